"""Ways to log in: a callback port that takes only one response and only its own, devices, and pasted addresses."""

from __future__ import annotations

import socket
import struct
import subprocess
import threading
import webbrowser
from asyncio import sleep
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import anyio
import pytest
from anyio import to_thread, wait_all_tasks_blocked

from mcp_bindgen.auth import Browser, DeviceCode, Headless, KnownClient
from mcp_bindgen.auth.client.login import device_code
from mcp_bindgen.auth.store import MemoryStore
from mcp_bindgen.runtime.protocol.errors import AuthorizationError
from tests.harness.authorization_world import World, agree, call, oauth, parts, visit
from tests.harness.checked_connections import refused
from tests.harness.processes import free_port


def get(url: str, *, host: str | None = None, method: str = "GET") -> tuple[int, str, dict[str, str]]:
    """Send a request as a browser does; return the status, the body and the headers."""
    place = urlsplit(url)
    connection = HTTPConnection(place.netloc, timeout=5)
    try:
        connection.request(method, f"{place.path}?{place.query}", headers={"Host": host or place.netloc})
        response = connection.getresponse()
        return response.status, response.read().decode(), {name.lower(): value for name, value in response.getheaders()}
    finally:
        connection.close()


def in_background(work: Callable[[str], object]) -> Callable[[str], bool]:
    """Return a function that opens a "browser", which calls `work` in a thread."""

    def opened(url: str) -> bool:
        threading.Thread(target=work, args=(url,)).start()
        return True

    return opened


returning = in_background(lambda url: get(visit(url)))


async def test_the_callback_accepts_one_response_and_refuses_other_requests(given: World) -> None:
    seen, left = dict[str, Any](), threading.Event()

    def return_often(url: str) -> None:
        address = visit(url)
        port = urlsplit(address).port
        base, state = address.partition("?")[0], parts(address)["state"]
        for query in ("code=evil&state=wrong&iss=x", "code=evil", f"code=evil&state={state}&state=x"):
            seen[query] = get(f"{base}?{query}")[0]
        seen["another path"] = get(address.replace("/callback", "/favicon.ico"))[0]
        seen["another host"] = get(address, host=f"evil.example:{port}")[0]
        seen["another method"] = get(address, method="POST")[0]
        seen["shown"] = get(f"{base}?code=<script>&state=wrong&error=<script>")[1]
        for sent in (b"\x16\x03\x01nonsense\r\n\r\n", b"GET /" + b"a" * 40_000):
            with socket.create_connection(("127.0.0.1", port or 0)) as raw:
                raw.sendall(sent)
        seen["right"] = get(address)
        try:
            seen["again"] = get(address)[0]
        except OSError:
            seen["again"] = "closed"
        left.set()

    await given.let_in(oauth(login=Browser(open=in_background(return_often))))
    assert await to_thread.run_sync(left.wait, 10)  # the client may have the token before the browser has read the page
    status, page, headers = seen.pop("right")
    assert status == 200
    assert "code" not in page
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    assert "<script>" not in seen.pop("shown")
    assert seen.pop("again") in (404, "closed")
    assert {name: status // 100 for name, status in seen.items()} == dict.fromkeys(seen, 4)
    assert given.counts("POST /token") == 1
    with pytest.raises(OSError, match="refused"):
        get(given.queries[0]["redirect_uri"])


@pytest.mark.parametrize("turns", range(3))
@pytest.mark.parametrize("does_reset", [True, False])
async def test_a_connection_that_comes_as_the_login_ends_is_closed(turns: int, does_reset: bool) -> None:
    """Browsers open connections in advance, and may reset them."""
    async with Browser().redirect(None) as redirect:
        address = ("127.0.0.1", urlsplit(redirect.uri).port or 0)
        await wait_all_tasks_blocked()
        if does_reset:
            with socket.create_connection(address) as reset:
                reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            await wait_all_tasks_blocked()
        late = socket.create_connection(address, 5)
        for _ in range(turns):
            await sleep(0)
    with late, suppress(ConnectionResetError):
        assert await to_thread.run_sync(late.recv, 1) == b""


async def test_the_callback_port_is_local_and_reused(given: World) -> None:
    store, browser = MemoryStore(), Browser(open=returning)
    for _ in range(2):
        await call(given.url, oauth(store, login=browser))
        given.tokens.clear()
        given.refreshes.clear()
    first, second = (query["redirect_uri"] for query in given.queries)
    assert first == second
    assert len(given.registered) == 1
    port = free_port()
    await given.let_in(oauth(login=Browser(port=port, open=returning)))
    assert given.queries[-1]["redirect_uri"] == f"http://127.0.0.1:{port}/callback"
    elsewhere = KnownClient("known", given.issuer, f"http://127.0.0.1:{port}/elsewhere")
    await given.denied(oauth(client=elsewhere, login=Browser()), "returns to")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        await given.denied(oauth(login=Browser(port=port)), f"port {port} is not free")


async def test_a_login_timeout_and_a_missing_browser_give_different_errors(given: World) -> None:
    await given.denied(oauth(login=Browser(open=lambda url: True, seconds=0.2)), "nobody logged in within 0.2 seconds")
    await given.denied(oauth(login=Browser(open=lambda url: False)), "no browser could be opened")


async def test_the_login_url_is_not_passed_to_a_shell(given: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address of a hostile authorization server is a single argument of the browser command, or is not opened."""
    popen = mock.Mock(side_effect=OSError)
    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setattr(webbrowser, "_tryorder", None)
    monkeypatch.setenv("BROWSER", "/bin/a-browser")
    hostile = "https://a.example/authorize?tenant=x%22%26calc%26"
    given.edit_server = lambda document: document | {"authorization_endpoint": hostile}
    await given.denied(oauth(login=Browser(seconds=0.2)))
    assert popen.called
    for (command, *_), options in popen.call_args_list:
        assert isinstance(command, list)
        assert not options.get("shell")
        assert command[-1].startswith(f"{hostile}&")


async def test_pasted_addresses_are_requested_until_one_is_valid(given: World) -> None:
    told, given_in = list[str](), ["nonsense", "http://127.0.0.1:8765/callback?code=x&state=wrong"]

    async def ask(prompt: str) -> str:
        if given_in:
            return given_in.pop(0)
        return f"  {await agree(told[0].splitlines()[-1])}\n"

    await given.let_in(oauth(login=Headless(told.append, ask)))
    assert len(told) == 3
    await given.denied(oauth(login=Headless(told.append, mock.AsyncMock(return_value="nonsense"))), "given up")


async def test_a_device_login_polls_at_the_interval_of_the_server(given: World) -> None:
    told, answers, slept = list[str](), ["authorization_pending", "slow_down", "access_denied"], list[float]()
    play = given.play_issuing

    async def devices(heard: Any) -> None:
        if heard.path == "/device":
            code = {"device_code": "of-the-device", "user_code": "AB\x1b[2J", "interval": 1, "expires_in": 60}
            await heard.json(code | {"verification_uri": "https://a.example/device"})
        else:
            await play(heard)

    given.issuing.play = devices
    given.edit_server = lambda document: document | {"device_authorization_endpoint": document["issuer"] + "/device"}
    given.answer_token = lambda form, heard: (400, {"error": answers.pop(0)})
    real = anyio.sleep

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await real(0)

    with mock.patch("mcp_bindgen.auth.client.oauth.anyio.sleep", sleep):
        await given.denied(oauth(login=Headless(told.append)), "access_denied")
    assert [one for one in slept if one >= 1][:3] == [1, 1, 6]
    assert "of-the-device" not in told[0]
    assert "\x1b" not in told[0]


@pytest.mark.parametrize("error", ["unauthorized_client", "unsupported_grant_type", "invalid_redirect_uri"])
async def test_a_client_that_gets_no_device_code_logs_in_by_an_address(given: World, error: str) -> None:
    """The server refuses the device code, or the registration of a client without a redirect URI."""
    told, play = list[str](), given.play_issuing

    async def refusing(heard: Any) -> None:
        is_refused = error == "invalid_redirect_uri" and b'"redirect_uris": []' in heard.body.replace(b":[", b": [")
        await (heard.json({"error": error}, 400) if heard.path == "/device" or is_refused else play(heard))

    async def paste(prompt: str) -> str:
        return await agree(told[-1].splitlines()[-1])

    given.issuing.play = refusing
    given.edit_server = lambda document: document | {"device_authorization_endpoint": document["issuer"] + "/device"}
    await given.let_in(oauth(login=Headless(told.append, paste)))
    assert len(told) == 1


def test_a_device_authorization_response_is_checked() -> None:
    right = {"verification_uri": "https://a.example/d", "user_code": "AB", "device_code": "x"}
    assert device_code(right)[0] == DeviceCode("https://a.example/d", "AB", None, 600.0)
    wrong: list[dict[str, Any]] = [{"verification_uri": uri} for uri in ("javascript:alert(1)", "http://a.example")]
    for one in [*wrong, {"verification_uri_complete": "file:///etc/passwd"}, {"user_code": 7}, {"device_code": ""}]:
        with pytest.raises(AuthorizationError):
            device_code(right | one)


async def test_waiting_for_a_browser_can_be_cancelled(given: World) -> None:
    opened, port = anyio.Event(), free_port()

    def note(url: str) -> bool:
        from anyio import from_thread

        from_thread.run_sync(opened.set)
        return True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, given.url, oauth(login=Browser(port=port, open=note)))
        await opened.wait()
        tasks.cancel_scope.cancel()
    await refused(to_thread.run_sync(get, f"http://127.0.0.1:{port}/callback"), OSError, "refused")
