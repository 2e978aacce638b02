"""Fetching URLs from untrusted sources: limits on addresses, size and time."""

from __future__ import annotations

import gzip
import ipaddress
import json
import socket
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest

from mcp_bindgen.auth.fetch import LIMIT, Fetched, Fetcher, FetchError, is_public
from tests.harness.effort import each
from tests.harness.scripted_http_server import Heard, serving

PUBLIC = "93.184.215.14"
INSIDE = """
127.0.0.1 127.255.0.9 10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 192.0.0.8 198.18.0.1 224.0.0.1
255.255.255.255 240.0.0.1 192.88.99.1 ::1 :: fe80::1 fc00::1 fec0::1 ff02::1 100::1 2001:db8::1 3fff::1 5f00::1
::ffff:10.0.0.1 ::ffff:169.254.169.254 ::127.0.0.1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1
2002:7f00:1::1 2002:a00:1:: 2001::1 2001:20::1
"""
OUTSIDE = [PUBLIC, "8.8.8.8", "2606:4700::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"]


def resolving(*addresses: str) -> Callable[[str, int], Awaitable[Iterable[str]]]:
    async def resolve(host: str, port: int) -> Iterable[str]:
        return addresses

    return resolve


def local(**options: Any) -> Fetcher:
    return Fetcher(loopback=True, **options)


async def refused(fetcher: Fetcher, url: str) -> FetchError:
    with pytest.raises(FetchError) as caught:
        await fetcher.get_json(url)
    return caught.value


@each("address", INSIDE.split())
async def test_an_internal_address_is_refused_directly_and_behind_a_name(address: str) -> None:
    shown = f"[{address}]" if ":" in address else address
    named = (Fetcher(resolve=resolving(address)), "https://a.example/x")
    for fetcher, url in ((Fetcher(), f"https://{shown}/x"), named):
        error = await refused(fetcher, url)
        assert error.is_refused
        assert "inside of a network" in str(error)


@each("address", OUTSIDE)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


URLS = {
    "is not https": "http://a.example/x http://10.0.0.1/",
    "not a URL of the web": "ftp://a.example/ javascript:alert(1) file:///etc/passwd https:///x nonsense",
    "credentials": "https://u:p@a.example/",
    "fragment": "https://a.example/#x",
    "hides": "https://2130706433/ https://0x7f000001/ https://127.0.0.1./",
    "inside of a network": "http://127.0.0.1/ https://[::1]/ https://localhost/ http://LOCALHOST./",
    "no usable port": "https://a.example:99999999/",
    "": "https://0177.0.0.1/ https://127.1/ https://0x7f.1/ https://[fe80::1%25eth0]/",
}


@each(("url", "why"), [(url, why) for why, urls in URLS.items() for url in urls.split()])
async def test_an_unsafe_url_is_refused_before_a_request_is_sent(url: str, why: str) -> None:
    error = await refused(Fetcher(resolve=resolving(PUBLIC)), url)
    assert error.is_refused
    assert why in str(error)
    assert "u:p" not in str(error)


async def test_the_checked_address_is_used_for_the_connection() -> None:
    """The fetcher resolves a name once and uses that address, against DNS rebinding."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    async with serving(lambda heard: heard.json({"host": heard.headers["host"]})) as script:
        url = script.url.replace("127.0.0.1", "localhost")
        assert (await local(resolve=resolve).get_json(url)).document == {"host": url.split("/")[2]}
        assert asked == ["localhost"]
        assert (await refused(local(resolve=resolving("10.0.0.1")), url)).is_refused


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one local address")
async def test_an_address_that_does_not_answer_leaves_time_for_the_next() -> None:
    async with serving(lambda heard: heard.json({})) as script:
        silent = ("127.0.0.2", urlsplit(script.url).port or 0)
        with ExitStack() as stack:
            stack.enter_context(socket.create_server(silent, backlog=0))
            for _ in range(3):  # more than the system keeps for a server that accepts none
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(silent)
            fetcher = local(timeout=2, resolve=resolving("127.0.0.2", "127.0.0.1"))
            assert (await fetcher.get_json(script.url.replace("127.0.0.1", "localhost"))).is_success


@each("proxy", ["socks5://127.0.0.1:1", "ftp://127.0.0.1:1", "http://[::1"])
async def test_an_unusable_proxy_is_reported(proxy: str) -> None:
    assert "no answer from https://example.com/x" in str(await refused(Fetcher(proxy=proxy), "https://example.com/x"))


async def test_a_trusted_host_may_have_an_internal_address() -> None:
    trusting = Fetcher(trusted=frozenset({"sso.corp"}), resolve=resolving("127.0.0.9"), timeout=2)
    assert (await refused(trusting, "https://sso.corp:1/x")).is_temporary  # a connection was attempted
    assert (await refused(trusting, "https://other.corp:1/x")).is_refused


async def test_local_addresses_need_the_loopback_option() -> None:
    async with serving(lambda heard: heard.json({})) as script:
        assert (await local().get_json(script.url)).document == {}
        assert (await refused(Fetcher(), script.url)).is_refused
        assert (await refused(Fetcher(), script.url.replace("127.0.0.1", "localhost"))).is_refused
        assert len(script.heard) == 1


async def test_a_redirect_is_not_followed() -> None:
    async with serving(lambda heard: heard.end(302, location="/elsewhere")) as script:
        assert "redirects" in str(await refused(local(), script.url))
        assert len(script.heard) == 1


async def _endless(heard: Heard) -> None:
    await heard.begin(200, "application/json")
    for _ in range(1000):
        await heard.write(b" " * 65536)
        await anyio.sleep(0)


async def _slow(heard: Heard) -> None:
    async def drip() -> None:
        while True:
            await heard.write(b" ")
            await anyio.sleep(0.05)

    await heard.begin(200, "application/json")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(drip)
        await heard.until_gone()
        tasks.cancel_scope.cancel()


def _whole(data: Callable[[], bytes], kind: str = "application/json", **headers: str) -> Callable[[Heard], Any]:
    return lambda heard: heard.end(200, data(), kind, **headers)


HARMFUL = [
    (
        _whole(lambda: gzip.compress(b" " * 200_000_000, 1)[:LIMIT], content_encoding="gzip"),
        f"more than {LIMIT}",
        False,
    ),
    (_whole(lambda: b'"%s"' % (b"x" * LIMIT)), f"more than {LIMIT}", False),
    (_endless, f"more than {LIMIT}", False),
    (_slow, "within 0.5 seconds", True),
    (Heard.until_gone, "within 0.5 seconds", True),
    (_whole(lambda: b"[" * 100 + b"]" * 100), "nested too deeply", False),
    (_whole(lambda: b'{"a":' * 50_000), "nested too deeply", False),
    (_whole(lambda: gzip.compress(gzip.compress(b"{}")), content_encoding="gzip, gzip"), "encoding", False),
    (_whole(lambda: b"<html>", "text/html"), "not JSON", False),
]


@pytest.mark.full
@pytest.mark.parametrize(("play", "why", "temporary"), HARMFUL)
async def test_a_harmful_document_is_refused(play: Any, why: str, temporary: bool) -> None:
    async with serving(play) as script:
        error = await refused(local(timeout=0.5 if temporary else 20.0), script.url)
        assert why in str(error)
        assert error.is_temporary == temporary


async def test_compressed_documents_and_error_responses_are_read() -> None:
    async def play(heard: Heard) -> None:
        if heard.method == "POST":
            await heard.json({"error": "invalid_grant", "got": heard.body.decode()}, 400)
        else:
            packed = gzip.compress(json.dumps({"a": 1}).encode())
            await heard.end(200, packed, "application/json", content_encoding="gzip", etag="x")

    async with serving(play) as script:
        fetched = await local().get_json(script.url)
        assert (fetched.object, fetched.headers["ETag"], fetched.is_success) == ({"a": 1}, "x", True)
        posted = await local().post_form(script.url, {"code": "a b&c"})
        assert (posted.status, posted.object) == (400, {"error": "invalid_grant", "got": "code=a+b%26c"})
        assert json.loads((await local().post_json(script.url, {"x": "ä"})).document["got"]) == {"x": "ä"}
        assert "a b" not in repr(posted)


def test_fetched_secrets_are_absent_from_representations() -> None:
    assert "secret" not in repr(Fetched(200, {"x": "secret"}, {"access_token": "secret"}))
    assert "secret" not in repr(Fetcher(proxy="http://u:secret@proxy.example"))
