"""Logins of users: in the browser of this machine, in another browser, or on another device.

A URL for users is never passed to a shell, and a response is only accepted if it belongs to the request.
OAuth 2.1, section 4.1; RFC 7636, RFC 8628, RFC 8707, RFC 9207.
"""

from __future__ import annotations

import re
import secrets
import socket
import sys
import webbrowser
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Protocol, runtime_checkable
from urllib.parse import parse_qsl, urlencode, urlsplit

import anyio
from anyio import to_thread
from anyio.abc import SocketStream, TaskGroup
from anyio.streams.buffered import BufferedByteReceiveStream

from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.logs import harmless
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from ..dpop import token_hash
from ..metadata import ServerMetadata, is_issuer, is_secure, other_issuer
from .clients import error_text
from .tokens import TokenRequest

IsResponse = Callable[[str], bool]
"""Returns True if an address is the response to an authorization request."""

_MAX_URL_CHARACTERS = 16 * 1024
_MAX_HEAD_BYTES = 16 * 1024
_MAX_CODE_CHARACTERS = 100
_MAX_PASTES = 3
_REQUEST_TIMEOUT = 10.0  # seconds for a browser to send a request and to read its page
_OK = "200 OK"
_BROKEN = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.IncompleteRead, anyio.DelimiterNotFound)
_RESET = ValueError  # anyio refuses to wrap a connection that the browser has reset
_URL = re.compile(r"[A-Za-z0-9\-._~:/?\[\]@&=+,%]+")
_SINGLE = ("code", "state", "iss", "error", "error_description")
_GET = re.compile(rb"GET (/[\x21-\x7e]*) HTTP/1\.[01]\r\n")
_HOST = re.compile(rb"\r\nhost:[ \t]*([\x21-\x7e]*)[ \t]*\r\n", re.IGNORECASE)
_PAGE = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>{0}</title>"
    "<body style='font:1.2em sans-serif;margin:4em'><h1>{0}</h1><p>{1}</p></body></html>"
)
_DONE = _PAGE.format("Received", "The program goes on; you can close this window.")
_NO = _PAGE.format("Not expected", "No login waits for this page.")


# --- authorization request ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AuthorizationRequest:
    """An authorization request, with the values that its response is compared with.

    Attributes:
        server: The authorization server; a response that names an issuer must name this one.
        redirect_uri: Address that the user returns to.
        url: URL that the user visits.
        state: Ties the response to this request.
        verifier: Ties the code to this request (PKCE).
        ignores_slash: True if a final slash of the issuer is ignored.
    """

    server: ServerMetadata
    redirect_uri: str
    url: str = field(repr=False)
    state: str = field(repr=False)
    verifier: str = field(repr=False)
    ignores_slash: bool = False

    @classmethod
    def new(
        cls, request: TokenRequest, client_id: str, redirect_uri: str, parameters: Mapping[str, str]
    ) -> AuthorizationRequest:
        """Make the authorization request for a token request.

        Args:
            request: The token request.
            client_id: The client.
            redirect_uri: Address that the user returns to.
            parameters: Further parameters; they replace none of the protocol's.

        Raises:
            AuthorizationError: The server does not support a safe login.
        """
        server, key = request.server, request.key
        _check_url(redirect_uri, "the redirect URI")
        endpoint = server.authorization_endpoint
        if endpoint is None:
            raise AuthorizationError(f"{server.issuer} has no authorization endpoint, so users cannot log in there")
        check_visitable(endpoint)
        methods = server.code_challenge_methods_supported
        is_assumed = methods is None and (server.is_legacy or request.quirks.assume_pkce)
        if not is_assumed and "S256" not in (methods or ()):
            raise AuthorizationError(
                f"{server.issuer} does not announce PKCE with S256, so a login is not safe there; "
                "if you know that it supports PKCE, set ServerQuirks(assume_pkce=True) for this issuer"
            )
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        query = {
            **parameters,
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": redirect_uri,
            "state": state,
            "code_challenge": token_hash(verifier),
            "code_challenge_method": "S256",
            **request.fields,
            **({} if key is None else {"dpop_jkt": key.thumbprint}),
        }
        if "offline_access" in request.scopes:
            query.setdefault("prompt", "consent")
        taken = {name for name, _ in parse_qsl(urlsplit(endpoint).query, keep_blank_values=True)}
        if taken & query.keys():
            raise AuthorizationError(f"{server.issuer} sets parameters of the request itself, which is not safe")
        url = f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(query)}"
        return cls(server, redirect_uri, url, state, verifier, request.quirks.ignore_final_slash)

    def is_response(self, address: str) -> bool:
        """Return True if an address belongs to this request: it has the same path and the same state, once."""
        states = [value for name, value in _query(address) if name == "state"]
        is_same = len(states) == 1 and compare_digest(states[0].encode(), self.state.encode())
        places = {one.partition("?")[0].removesuffix("/") for one in (address, self.redirect_uri)}
        return is_same and len(places) == 1  # browsers add a slash to an address without a path

    def code(self, address: str) -> str:
        """Return the code in the address that the user returned to.

        Raises:
            AuthorizationError: The address is not the response to this request, or the server refuses access. The
                message shows nothing of a response from another server.
        """
        if not self.is_response(address):
            raise AuthorizationError("the login did not return the response to our request; nothing was sent")
        pairs, issuer = _query(address), self.server.issuer
        found = dict(pairs)
        if any(sum(name == one for name, _ in pairs) > 1 for one in _SINGLE):
            raise AuthorizationError("the response to the login says something twice; nothing was sent")
        must_name = self.server.authorization_response_iss_parameter_supported
        named = found.get("iss")
        if ("iss" in found or must_name) and not is_issuer(named, issuer, ignores_slash=self.ignores_slash):
            near = f": it {other_issuer(named, issuer)}" if is_issuer(named, issuer, ignores_slash=True) else ""
            raise AuthorizationError(f"the response to the login does not come from {issuer}; nothing was sent{near}")
        if "error" in found:
            raise AuthorizationError(f"{issuer} does not grant access: {error_text(found)}")
        if not found.get("code"):
            raise AuthorizationError(f"{issuer} answered the login without a code")
        return found["code"]


def check_visitable(url: str) -> None:
    """Check a URL that a browser will open: another program could interpret it otherwise.

    Raises:
        AuthorizationError: The URL is neither https nor http on this machine, or has characters that need escapes.
    """
    _check_url(url, "the URL for users to visit")
    if _URL.fullmatch(url) is None or len(url) > _MAX_URL_CHARACTERS:
        raise AuthorizationError("the URL for users to visit has characters that could be taken for a command")


def _check_url(url: str, name: str) -> None:
    try:
        parts = urlsplit(url)
        is_safe = is_secure(url) and parts.hostname and "@" not in parts.netloc and not parts.fragment
    except ValueError:
        is_safe = False
    if not is_safe:
        raise AuthorizationError(f"{name} must be an https URL, or http on this machine")


def _query(address: str) -> list[tuple[str, str]]:
    try:
        query = urlsplit(address[:_MAX_URL_CHARACTERS]).query
        return parse_qsl(query, keep_blank_values=True, max_num_fields=50)
    except ValueError:
        return []


# --- ways to log in -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Redirect:
    """Address that a user returns to from the authorization server.

    Attributes:
        uri: The address.
        open: Opens a URL for the user; returns the address of the response.
    """

    uri: str
    open: Callable[[str, IsResponse], Awaitable[str]]

    async def visit(self, url: str, is_response: IsResponse) -> str:
        """Have the user visit a URL; return the address that the user returns to.

        Args:
            url: URL to visit.
            is_response: Returns True for an address that belongs to this visit.

        Raises:
            AuthorizationError: The user cannot visit the URL, or does not return.
        """
        check_visitable(url)
        return await self.open(url, is_response)


class Login(Protocol):
    """A way for users to log in."""

    @property
    def is_enabled(self) -> bool:
        """False if every login is refused, so that no other process has to wait for one."""
        ...

    def redirect(self, preferred: str | None) -> AbstractAsyncContextManager[Redirect]:
        """Open an address for the user to return to.

        Args:
            preferred: Address that the authorization server knows already.
        """
        ...


@runtime_checkable
class DeviceLogin(Protocol):
    """A login on another device."""

    async def show_device(self, code: DeviceCode) -> None:
        """Show the user how to log in there."""


@dataclass(frozen=True)
class DeviceCode:
    """Instructions for a login on another device (RFC 8628, section 3.2).

    Attributes:
        uri: URL to visit there.
        user_code: Code to enter there.
        complete_uri: URL that includes the code, if the server has one.
        seconds: Lifetime of the code.
    """

    uri: str
    user_code: str
    complete_uri: str | None
    seconds: float


def device_code(document: Mapping[str, object]) -> tuple[DeviceCode, str, float]:
    """Return the instructions for the user, the secret code of the device, and the polling interval in seconds.

    Raises:
        AuthorizationError: The response of the authorization server is not usable.
    """
    uri, complete = document.get("verification_uri"), document.get("verification_uri_complete")
    code, secret = document.get("user_code"), document.get("device_code")
    if not (isinstance(uri, str) and isinstance(code, str) and isinstance(secret, str) and code and secret):
        raise AuthorizationError("the authorization server does not tell how to log in on another device")
    complete = complete if isinstance(complete, str) else None
    check_visitable(uri)
    check_visitable(complete or uri)
    interval, seconds = document.get("interval"), document.get("expires_in")
    pause = float(max(1, min(interval, 60))) if isinstance(interval, int | float) else 5.0
    life = float(max(1, min(seconds, 3600))) if isinstance(seconds, int | float) else 600.0
    return DeviceCode(uri, harmless(code)[:_MAX_CODE_CHARACTERS], complete, life), secret, pause


def _open_browser(url: str) -> bool:
    """Open the browser of this machine; Python's `webbrowser` starts programs without a shell."""
    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False


@dataclass(frozen=True)
class Browser:
    """Log in with the browser of this machine, which returns to a local port.

    Attributes:
        port: The port; by default a free port, and the same port the next time if possible.
        path: Path of the redirect URI.
        host: Host of the redirect URI: `127.0.0.1`, or `localhost` for servers that accept only that.
        open: Opens a URL; returns True if that worked.
        seconds: Time limit for the user.
    """

    port: int = 0
    path: str = "/callback"
    host: str = "127.0.0.1"
    open: Callable[[str], bool] = _open_browser
    seconds: float = 600.0

    is_enabled = True

    @asynccontextmanager
    async def redirect(self, preferred: str | None) -> AsyncGenerator[Redirect]:
        """Listen on this machine for one response."""
        with self._listen(preferred) as listener:
            listener.setblocking(False)
            async with background_tasks() as tasks:
                callback = _Callback(self, listener.getsockname()[1])
                tasks.start_soon(callback.serve, listener, tasks)
                yield Redirect(callback.uri, callback.wait)

    def _listen(self, preferred: str | None) -> socket.socket:
        known = None
        with suppress(ValueError):
            known = urlsplit(preferred or "").port
        if known and not self.port:
            with suppress(OSError):
                return socket.create_server(("127.0.0.1", known))
        try:
            return socket.create_server(("127.0.0.1", self.port))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise AuthorizationError(f"port {self.port} is not free to return to from the login: {reason}") from None


class _Callback:
    """HTTP server on this machine that accepts one response and refuses all other requests."""

    def __init__(self, browser: Browser, port: int) -> None:
        self.uri = f"http://{browser.host}:{port}{browser.path}"
        self._browser, self._port = browser, port
        self._is_response: IsResponse = lambda address: False
        self._address: str | None = None
        self._is_done = anyio.Event()

    async def wait(self, url: str, is_response: IsResponse) -> str:
        """Open the browser; return the address of the response, after the browser has got its page."""
        self._is_response = is_response
        browser = self._browser
        if not await to_thread.run_sync(browser.open, url, abandon_on_cancel=True):
            raise AuthorizationError("no browser could be opened; use login=Headless(), or log in on another machine")
        with anyio.move_on_after(browser.seconds):
            await self._is_done.wait()
        if self._address is None:
            raise AuthorizationError(f"nobody logged in within {browser.seconds:g} seconds")
        return self._address

    async def serve(self, listener: socket.socket, tasks: TaskGroup) -> None:
        """Answer requests; the listener of anyio would lose a connection that arrives while it is cancelled."""
        while True:
            await anyio.wait_readable(listener)
            with suppress(OSError):  # the browser may have gone already
                tasks.start_soon(self._serve, listener.accept()[0])

    async def _serve(self, connection: socket.socket) -> None:
        """Answer one request."""
        with connection, suppress(*_BROKEN, _RESET), anyio.move_on_after(_REQUEST_TIMEOUT):
            async with await SocketStream.from_socket(connection) as stream:
                head = await BufferedByteReceiveStream(stream).receive_until(b"\r\n\r\n", _MAX_HEAD_BYTES)
                status, page = self._take(head + b"\r\n")
                try:
                    await stream.send(_response(status, page))
                finally:
                    if status == _OK:
                        self._is_done.set()

    def _take(self, head: bytes) -> tuple[str, str]:
        """Return status and page for a request, and keep its address if it is the response."""
        found, hosts = _GET.match(head), _HOST.findall(head)
        allowed = (f"127.0.0.1:{self._port}", f"localhost:{self._port}")
        if found is None or len(hosts) != 1 or hosts[0].decode() not in allowed:
            return "400 Bad Request", _NO
        address = f"http://{self._browser.host}:{self._port}{found[1].decode()}"
        if self._address is not None or not self._is_response(address):
            return "404 Not Found", _NO
        self._address = address
        return _OK, _DONE


def _response(status: str, page: str) -> bytes:
    headers = (
        f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {len(page)}\r\n"
        "cache-control: no-store\r\nreferrer-policy: no-referrer\r\nx-content-type-options: nosniff\r\n"
        "content-security-policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'\r\n"
        "connection: close\r\n\r\n"
    )
    return f"{headers}{page}".encode("ascii")


@dataclass(frozen=True)
class Manual:
    """Log in by a function of the program: it shows a URL to a user and returns the address of the response.

    Attributes:
        visit: The function.
        redirect_uri: Address that the user returns to: https, or this machine.
    """

    visit: Callable[[str], Awaitable[str]]
    redirect_uri: str

    is_enabled = True

    @asynccontextmanager
    async def redirect(self, preferred: str | None) -> AsyncGenerator[Redirect]:
        """Return the address of the function."""
        yield Redirect(self.redirect_uri, lambda url, is_response: self.visit(url))


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


async def _input(prompt: str) -> str:
    return await to_thread.run_sync(input, prompt, abandon_on_cancel=True)


@dataclass(frozen=True)
class Headless:
    """Log in without a browser on this machine: on another device with a code, if the authorization server can.

    Otherwise the user visits a URL in any browser. The browser cannot open the address after the login; the user copies
    the address instead.

    Attributes:
        tell: Shows a text to the user.
        ask: Asks the user for a line.
        port: Port in the redirect URI; no program listens there.
        path: Path of the redirect URI.
        host: Host of the redirect URI: `127.0.0.1` or `localhost`.
    """

    tell: Callable[[str], object] = _print
    ask: Callable[[str], Awaitable[str]] = _input
    port: int = 8765
    path: str = "/callback"
    host: str = "127.0.0.1"

    is_enabled = True

    @asynccontextmanager
    async def redirect(self, preferred: str | None) -> AsyncGenerator[Redirect]:
        """Return an address for the user to copy."""
        yield Redirect(f"http://{self.host}:{self.port}{self.path}", self._paste)

    async def show_device(self, code: DeviceCode) -> None:
        """Tell the user which code to enter at which URL."""
        place = f"{code.complete_uri}\nor visit {code.uri}" if code.complete_uri else code.uri
        self.tell(f"To log in, visit {place}\nand enter {code.user_code}")

    async def _paste(self, url: str, is_response: IsResponse) -> str:
        self.tell(f"To log in, visit this in any browser, then copy the address that it ends at:\n{url}")
        for _ in range(_MAX_PASTES):
            address = (await self.ask("The address: ")).strip()
            if is_response(address):
                return address
            self.tell("That is not the address that this login ends at.")
        raise AuthorizationError("the login was given up, because its address was not pasted")
