"""Allowed hosts and origins of a server: names mean the same everywhere, and a log line names the fix."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from mcp_bindgen.http import HttpApp, SseApp
from mcp_bindgen.http.server.errors import HttpError
from mcp_bindgen.http.server.origin_policy import LOOPBACK, OriginPolicy
from mcp_bindgen.http.server.serve import hosts_for
from mcp_bindgen.v2025_11_25 import Server
from mcp_bindgen.v2025_11_25 import types as mcp
from tests.harness.effort import each
from tests.harness.http_wires import wires

NAME = "mcp.example.com"


class Named(Server):
    """Server with a name."""

    info = mcp.Implementation(name="named", version="1")


def status(policy: OriginPolicy, host: str, **headers: str) -> int:
    """Return the status of a request with these headers; 200 if it is allowed."""
    given = [(b"host", host.encode("latin-1")), *((name.encode(), value.encode()) for name, value in headers.items())]
    try:
        policy.check(given)
    except HttpError as error:
        return error.status
    return 200


@each(
    ("names", "yes", "no"),
    [
        ([NAME], [NAME, f"{NAME}:8443", "MCP.Example.COM", f"{NAME}.", f"{NAME}.:443"], [f"x.{NAME}", f"{NAME}.evil"]),
        (
            [NAME],
            [f"{NAME}:"],
            ["", " ", f"{NAME} ", f"{NAME}..", f"a@{NAME}", f"http://{NAME}", f"{NAME},evil", "evil"],
        ),
        ([f"{NAME}:8443"], [f"{NAME}:8443"], [NAME, f"{NAME}:443", f"{NAME}:84430"]),
        ([f"{NAME}:443"], [f"{NAME}:443", NAME], [f"{NAME}:444"]),
        ([f"{NAME}."], [NAME], []),
        (["*.example.com"], [NAME, f"a.{NAME}:1"], ["example.com", "evilexample.com", "example.com.evil"]),
        (["*.example.com:8000"], [f"{NAME}:8000"], [f"{NAME}:8001"]),
        (["::1"], ["[::1]", "[0:0:0:0:0:0:0:1]:80"], ["[::2]", "::1"]),
        (["[2001:DB8::1]:9"], ["[2001:db8:0::1]:9"], ["[2001:db8::1]"]),
        (["10.0.0.0/8"], ["10.1.2.3:80"], ["11.0.0.1", "10.evil.example", "0xa.1.2.3"]),
        (["münchen.example"], ["xn--mnchen-3ya.example"], ["m\u00fcnchen.example", "munchen.example"]),
        (["*"], ["anything at all", ""], []),
        (None, ["localhost:8000", "LOCALHOST:1", "127.0.0.1", "[::1]:80"], ["localhost@evil.example", "[::1"]),
        (None, [], ["localhost.evil.example:80", "127.0.0.1.evil.example", "", "evil"]),
        ([], [], ["localhost"]),
    ],
)
def test_the_host_header_must_match_an_allowed_host(names: list[str] | None, yes: list[str], no: list[str]) -> None:
    policy = OriginPolicy(names)
    assert {host: status(policy, host) for host in (*yes, *no)} == dict.fromkeys(yes, 200) | dict.fromkeys(no, 421)


@each("name", ["", " ", "https://mcp.example.com", "a b", "a,b", "*evil.com", "a.*.com", "*.", ".", "a/b", "a:x"])
def test_an_allowed_host_that_can_never_match_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="use HOST"):
        OriginPolicy([name])


def test_the_allowed_hosts_determine_the_default_allowed_origins(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(policy: OriginPolicy) -> list[int]:
        names = f"https://{NAME} http://localhost:5173 https://evil.example https://{NAME}.evil {NAME} null"
        return [status(policy, NAME, origin=origin) for origin in names.split()]

    assert found(OriginPolicy([NAME])) == [200, 200, 403, 403, 403, 403]
    assert found(OriginPolicy(["*"])) == found(OriginPolicy(["*.example.com"])) == [403, 200, 403, 403, 403, 403]
    assert found(OriginPolicy([NAME], [])) == [403] * 6
    chosen = OriginPolicy([NAME], ["https://app.example", "other.example"])
    pages = ("https://app.example", "http://app.example", "http://other.example:1", "http://localhost")
    assert [status(chosen, NAME, origin=page) for page in pages] == [200, 403, 200, 403]
    yes = ["http://localhost:3000", "https://127.0.0.1", "http://[::1]"]
    no = ["file://", "https://localhost.evil.example", "http://localhost:3000@evil.example"]
    assert [status(OriginPolicy(), "localhost", origin=one) for one in (*yes, *no)] == [200] * 3 + [403] * 3
    monkeypatch.setenv("ALLOWED_ORIGINS", "https://evil.example")
    assert found(OriginPolicy([NAME])) == [403, 403, 200, 403, 403, 403]


def test_the_environment_sets_the_allowed_hosts_unless_the_program_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert status(OriginPolicy(), "localhost") == 200
    monkeypatch.setenv("ALLOWED_HOSTS", f" {NAME}, other.example:1,")
    assert [status(OriginPolicy(), host) for host in (NAME, "other.example:1", "localhost")] == [200, 200, 421]
    assert (status(OriginPolicy(["localhost"]), NAME), set(hosts_for("0.0.0.0"))) == (421, {NAME, "other.example:1"})
    monkeypatch.setenv("ALLOWED_HOSTS", "")
    assert status(OriginPolicy(), "localhost") == 200


@each("host", ["0.0.0.0", "::", "192.168.1.5", "box.example", "fe80::1%eth0"])
def test_a_public_address_allows_only_loopback_names_and_ip_addresses_by_default(host: str) -> None:
    policy = OriginPolicy(hosts_for(host))
    assert {status(policy, one) for one in (*LOOPBACK, "192.168.1.5:80", "[fe80::1]")} == {200}
    assert status(policy, "evil.example") == 421  # a page that uses DNS rebinding
    assert status(policy, "127.0.0.1.evil.example") == 421
    assert status(policy, "localhost", origin="http://evil.example") == 403
    assert status(OriginPolicy(hosts_for("127.0.0.1")), "192.168.1.5") == 421


@pytest.mark.parametrize("make", [HttpApp, SseApp])
async def test_forwarded_host_headers_are_ignored(make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOWED_HOSTS", NAME)
    path = "/mcp" if make is HttpApp else "/sse"
    async with wires(make(Named())) as http:
        for host, expected in ((NAME, (200, 400)), ("evil.example", (421,))):
            forwarded = {"x_forwarded_host": NAME, "forwarded": f"host={NAME}", "x_host": NAME}
            wire = await http.ask("HEAD" if path == "/sse" else "GET", path=path, host=host, **forwarded)
            await wire.until(lambda received: b"\r\n\r\n" in received)
            assert int(wire.received.split()[1]) in expected


def test_a_refused_host_is_logged_with_its_fix_and_log_lines_are_limited(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = OriginPolicy([NAME])
    for _ in range(3):
        assert status(policy, "wiki.example") == 421
    (line,) = caplog.messages
    assert "421" in line
    assert "'wiki.example'" in line
    for fix in ("--allowed-host", "ALLOWED_HOSTS", "allowed_hosts="):
        assert fix in line
    assert status(policy, f"\r\nforged \x1b[31m{'x' * 10_000}") == 421
    assert status(policy, NAME, origin="https://page.example") == 403
    assert "'https://page.example'" in caplog.messages[2]
    assert "--allowed-origin" in caplog.messages[2]
    for number in range(1000):
        assert status(policy, f"{number}.example") == 421
    assert len(caplog.messages) == 10
    assert all(line.isprintable() and len(line) < 700 for line in caplog.messages)
    later = time.monotonic() + 3600
    monkeypatch.setattr("time.monotonic", lambda: later)
    assert (status(policy, "wiki.example"), len(caplog.messages)) == (421, 11)
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
