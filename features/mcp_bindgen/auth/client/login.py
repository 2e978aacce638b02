"""Have a user log in: in the browser of this machine, in one elsewhere, or on another device.

What the user visits is handed to no shell, and what comes back is only taken if it answers the request that was made.
"""

from __future__ import annotations

import asyncio
import re
import sys
import webbrowser
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

import anyio
from anyio import to_thread

from mcp_bindgen.runtime.logs import harmless
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from .request import check_visitable

IsOurs = Callable[[str], bool]
Visit = Callable[[str], Awaitable[str]]

_HEAD = 16 * 1024  # bytes of a request of a browser
_SLOW = 10.0  # seconds for a browser to send it
_GET = re.compile(rb"GET (/[\x21-\x7e]*) HTTP/1\.[01]\r\n")
_HOST = re.compile(rb"\r\nhost:[ \t]*([\x21-\x7e]*)[ \t]*\r\n", re.IGNORECASE)
_PAGE = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>{0}</title>"
    "<body style='font:1.2em sans-serif;margin:4em'><h1>{0}</h1><p>{1}</p></body></html>"
)
_DONE = _PAGE.format("Received", "The program goes on; you can close this window.")
_NO = _PAGE.format("Not expected", "Nobody waits for this.")
_TRIES = 3  # addresses that a user may paste


class Redirect(Protocol):
    """Take a user who comes back from the authorization server."""

    @property
    def uri(self) -> str:
        """The address."""
        ...

    async def visit(self, url: str, is_ours: IsOurs) -> str:
        """Have the user visit a URL; return the address that the user comes back to.

        Args:
            url: What to visit.
            is_ours: Tells whether an address is the answer to this visit.

        Raises:
            AuthorizationError: The user cannot visit it, or does not come back.
        """
        ...


class Login(Protocol):
    """A way to have users log in."""

    def redirect(self, preferred: str | None) -> AbstractAsyncContextManager[Redirect]:
        """Open a place for the user to come back to.

        Args:
            preferred: The place that the authorization server knows already.
        """
        ...


@dataclass(frozen=True)
class DeviceCode:
    """Tell a user how to log in on another device (RFC 8628, section 3.2).

    Attributes:
        uri: What to visit there.
        user_code: What to enter there.
        complete_uri: What to visit instead, without having to enter anything, if there is such a thing.
        seconds: How long it can be used.
    """

    uri: str
    user_code: str
    complete_uri: str | None
    seconds: float


class DeviceLogin(Login, Protocol):
    """A way to log in that can also use another device."""

    async def show_device(self, code: DeviceCode) -> None:
        """Tell the user what to do there."""
        ...


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _open_browser(url: str) -> bool:
    """Open the browser of this machine; Python's `webbrowser` starts programs without a shell."""
    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False


@dataclass(frozen=True)
class Browser:
    """Log in with the browser of this machine, which comes back to a port that is open for as long.

    Attributes:
        port: The port; by default one that is free, and the same one the next time if possible.
        path: The path of the address that users come back to.
        host: Its host: `127.0.0.1`, or `localhost` for authorization servers that know only that.
        open: Opens a URL and tells whether that worked.
        seconds: How long to wait for the user.
    """

    port: int = 0
    path: str = "/callback"
    host: str = "127.0.0.1"
    open: Callable[[str], bool] = _open_browser
    seconds: float = 600.0

    @asynccontextmanager
    async def redirect(self, preferred: str | None) -> AsyncGenerator[Redirect]:
        """Listen on this machine, for one answer."""
        ports = [self.port] if self.port else [*_port_of(preferred), 0]
        callback: _Callback | None = None
        for port in ports:
            try:
                callback = await _Callback.listen(self, port)
                break
            except OSError as error:
                if port == ports[-1]:
                    why = error.strerror or type(error).__name__
                    raise AuthorizationError(f"port {port} is not free to come back to from the login: {why}") from None
        assert callback is not None
        try:
            yield callback
        finally:
            callback.close()


class _Callback:
    """A server on this machine that takes one answer; whatever else is sent to it changes nothing."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._is_ours: IsOurs = lambda address: False
        self._answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None
        self._answering: set[asyncio.Task[None]] = set()
        self.uri = ""

    @classmethod
    async def listen(cls, browser: Browser, port: int) -> _Callback:
        callback = cls(browser)
        server = await asyncio.start_server(callback._serve, "127.0.0.1", port, limit=_HEAD)
        callback._server = server
        callback.uri = f"http://{browser.host}:{server.sockets[0].getsockname()[1]}{browser.path}"
        return callback

    async def visit(self, url: str, is_ours: IsOurs) -> str:
        check_visitable(url)
        self._is_ours = is_ours
        browser = self._browser
        if not await to_thread.run_sync(browser.open, url, abandon_on_cancel=True):
            raise AuthorizationError(
                "no browser could be opened; log in with Headless() instead, or on another machine"
            )
        try:
            with anyio.fail_after(browser.seconds):
                address = await self._answer
        except TimeoutError:
            raise AuthorizationError(f"nobody logged in within {browser.seconds:g} seconds") from None
        if self._answering:
            await asyncio.wait(self._answering, timeout=1.0)
        return address

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._answering:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        try:
            with anyio.fail_after(_SLOW):
                status, page = self._take(await reader.readuntil(b"\r\n\r\n"))
                writer.write(_response(status, page))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._answering.discard(task)
            writer.close()

    def _take(self, head: bytes) -> tuple[str, str]:
        """Return what to answer, and take the request if it is what is waited for."""
        found, hosts = _GET.match(head), _HOST.findall(head)
        port = urlsplit(self.uri).port
        if found is None or len(hosts) != 1 or hosts[0].decode() not in (f"127.0.0.1:{port}", f"localhost:{port}"):
            return "400 Bad Request", _NO
        address = f"{self.uri.removesuffix(self._browser.path)}{found[1].decode()}"
        if self._answer.done() or not self._is_ours(address):
            return "404 Not Found", _NO
        self._answer.set_result(address)
        return "200 OK", _DONE


def _response(status: str, page: str) -> bytes:
    headers = (
        f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {len(page)}\r\n"
        "cache-control: no-store\r\nreferrer-policy: no-referrer\r\nx-content-type-options: nosniff\r\n"
        "content-security-policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'\r\n"
        "connection: close\r\n\r\n"
    )
    return f"{headers}{page}".encode("ascii")


def _port_of(uri: str | None) -> list[int]:
    try:
        port = urlsplit(uri or "").port
    except ValueError:
        return []
    return [port] if port else []


@dataclass(frozen=True)
class Manual:
    """Log in by a function of the program: it shows a URL to somebody, and returns the address they came back to.

    Attributes:
        visit: The function.
        redirect_uri: Where they come back to: https, or this machine.
    """

    visit: Visit
    redirect_uri: str

    @asynccontextmanager
    async def redirect(self, preferred: str | None) -> AsyncGenerator[Redirect]:
        """Leave it to the function."""
        yield _ByFunction(self)


@dataclass(frozen=True)
class _ByFunction:
    manual: Manual

    @property
    def uri(self) -> str:
        return self.manual.redirect_uri

    async def visit(self, url: str, is_ours: IsOurs) -> str:
        check_visitable(url)
        return await self.manual.visit(url)


async def _ask(prompt: str) -> str:
    return await to_thread.run_sync(input, prompt, abandon_on_cancel=True)


@dataclass(frozen=True)
class Headless:
    """Log in without a browser on this machine: on another device with a code, if the authorization server can do that.

    Else the user visits a URL anywhere. What the browser shows after the login cannot be opened there, but its address
    can be copied, and is asked for.

    Attributes:
        tell: Shows a text to the user.
        ask: Asks the user for a line.
        port: The port in the address that users come back to, where nobody listens.
    """

    tell: Callable[[str], object] = _tell
    ask: Callable[[str], Awaitable[str]] = _ask
    port: int = 8765

    @asynccontextmanager
    async def redirect(self, preferred: str | None) -> AsyncGenerator[Redirect]:
        """Leave it to the user."""
        yield _Pasted(self)

    async def show_device(self, code: DeviceCode) -> None:
        """Tell the user what to enter where."""
        place = f"{code.complete_uri}\nor visit {code.uri}" if code.complete_uri else code.uri
        self.tell(f"To log in, visit {place}\nand enter {code.user_code}")


@dataclass(frozen=True)
class _Pasted:
    headless: Headless

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.headless.port}/callback"

    async def visit(self, url: str, is_ours: IsOurs) -> str:
        check_visitable(url)
        self.headless.tell(f"To log in, visit this in any browser, then copy the address that it ends at:\n{url}")
        for _ in range(_TRIES):
            address = (await self.headless.ask("The address: ")).strip()
            if is_ours(address):
                return address
            self.headless.tell("That is not the address that this login ends at.")
        raise AuthorizationError("the login was given up, because its address was not pasted")


def device_code(document: Mapping[str, object]) -> tuple[DeviceCode, str, float]:
    """Return what a user is told about a device, the secret code of the device, and the seconds between two questions.

    Raises:
        AuthorizationError: The authorization server did not say what is needed.
    """
    uri, complete = document.get("verification_uri"), document.get("verification_uri_complete")
    code, secret = document.get("user_code"), document.get("device_code")
    if not (isinstance(uri, str) and isinstance(code, str) and isinstance(secret, str) and code and secret):
        raise AuthorizationError("the authorization server does not say how to log in on another device")
    check_visitable(uri)
    if isinstance(complete, str):
        check_visitable(complete)
    interval, seconds = document.get("interval"), document.get("expires_in")
    pause = float(max(1, min(interval, 60))) if isinstance(interval, int | float) else 5.0
    life = float(max(1, min(seconds, 3600))) if isinstance(seconds, int | float) else 600.0
    return DeviceCode(uri, harmless(code)[:100], complete if isinstance(complete, str) else None, life), secret, pause
