"""Fetch files over https, within limits of size and time, without disclosing credentials."""

from __future__ import annotations

import ssl
from base64 import b64encode
from http.client import HTTPException, HTTPMessage, responses
from ipaddress import ip_address
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO
from urllib import request
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from .errors import BadInput

TIMEOUT = 30.0
"""Maximum time for a file in seconds, including redirects."""

_REDIRECTS = 5
_RESERVED = "/%:@!$&'()*+,;=~"


def fetch(url: str, most: int) -> bytes:
    """Return the file at an address.

    Plain http is allowed for this machine only. Proxies of the environment are used for other machines.

    Args:
        url: The address; its user and password are sent to its own host only.
        most: Maximum size in bytes.

    Raises:
        BadInput: The address is not secure or cannot be reached, or the file takes too long or is too large.
    """
    split = _checked(url)
    answers: SimpleQueue[bytes | BadInput] = SimpleQueue()

    def work() -> None:
        try:
            answers.put(_fetch(split, most))
        except BadInput as error:
            answers.put(error)
        except Exception as error:  # a malformed response may raise any error; the caller waits for a result
            answers.put(BadInput(f"cannot be fetched ({type(error).__name__})", fix="look at the address"))

    # timeouts of sockets limit each wait, but not their sum or name resolution
    Thread(target=work, name="fetch", daemon=True).start()
    try:
        answer = answers.get(timeout=TIMEOUT)
    except Empty:
        raise BadInput(f"takes longer than {TIMEOUT:g} s", fix="try again later, or fetch the file yourself") from None
    if isinstance(answer, BadInput):
        raise answer
    return answer


def shown(url: str) -> str:
    """Return an address for messages: without user, password and query, which may be secret."""
    split = _split(url)
    host = split.netloc.rpartition("@")
    return f"{split.scheme}://{'...@' if host[1] else ''}{host[2]}{split.path}{'?...' if split.query else ''}"


def path_of(url: str) -> str:
    """Return the unquoted path of an address."""
    return unquote(_split(url).path)


def _split(url: str) -> SplitResult:
    try:
        split = urlsplit(url)
        _ = split.port
    except ValueError:
        raise BadInput("is not an address", fix="write https://HOST/PATH") from None
    return split


def _checked(url: str) -> SplitResult:
    split = _split(url)
    if split.scheme not in ("http", "https") or not split.hostname:
        raise BadInput("is not an https address", fix="write https://HOST/PATH, or give the path of a file")
    if split.scheme == "http" and not _is_local(split):
        raise BadInput("http can be read and changed on its way", fix="use https")
    return split


def _is_local(split: SplitResult) -> bool:
    host = split.hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class _Redirects(request.HTTPRedirectHandler):
    """Follow redirects to https, and redirects from this machine to itself."""

    max_redirections = max_repeats = _REDIRECTS

    def http_error_302(self, req: request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage) -> object:
        """Follow a redirect, if it is allowed."""
        seen: dict[str, int] = getattr(req, "redirect_dict", {})
        try:
            new = urlsplit(urljoin(req.full_url, headers.get("Location", "")))
        except ValueError:
            new = urlsplit("")
        stays = new.scheme == "http" and _is_local(urlsplit(req.full_url)) and _is_local(new)
        if new.scheme == "https" or (stays and sum(seen.values()) < _REDIRECTS):
            return super().http_error_302(req, fp, code, msg, headers)
        fp.close()
        where = f"more than {_REDIRECTS} times" if stays else f"to {new.scheme or 'nowhere'}, which is not https"
        raise BadInput(f"redirects {where}", fix="give the final address")

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302  # pyright: ignore


def _fetch(split: SplitResult, most: int) -> bytes:
    address = split._replace(
        netloc=split.netloc.rpartition("@")[2],
        path=quote(split.path or "/", safe=_RESERVED),
        query=quote(split.query, safe=f"{_RESERVED}?"),
        fragment="",
    ).geturl()
    asked = request.Request(address, headers={"User-Agent": "mcp-bindgen", "Accept": "application/json, */*;q=0.5"})  # noqa: S310
    if split.username is not None:
        credentials = f"{unquote(split.username)}:{unquote(split.password or '')}".encode()
        asked.add_unredirected_header("Authorization", f"Basic {b64encode(credentials).decode()}")
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler({} if _is_local(split) else None),
        request.HTTPHandler(),
        request.HTTPSHandler(context=ssl.create_default_context()),
        request.HTTPDefaultErrorHandler(),
        request.HTTPErrorProcessor(),
        _Redirects(),
    ):
        opener.add_handler(handler)
    try:
        with opener.open(asked, timeout=TIMEOUT) as response:
            encoding = response.headers.get("Content-Encoding", "identity")
            if encoding != "identity":
                raise BadInput(f"is compressed ({encoding})", fix="fetch and unpack it yourself")
            content: bytes = response.read(most + 1)
            promised = response.headers.get("Content-Length", "")
    except HTTPError as error:
        error.close()
        raise _refused(error.code) from None
    except URLError as error:
        reason = error.reason.strerror or error.reason if isinstance(error.reason, OSError) else error.reason
        raise BadInput(f"cannot be reached ({reason})", fix="check the address and the network") from None
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror or error})", fix="try again") from None
    except (HTTPException, ValueError) as error:
        raise BadInput(f"is not answered in HTTP ({type(error).__name__})", fix="check the address") from None
    if promised.isdigit() and len(content) < min(int(promised), most):
        raise BadInput("ends before it is complete", fix="try again")
    if content.lstrip()[:1] == b"<":
        raw = shown(split.geturl()).replace("/blob/", "/raw/", 1)
        known = "/blob/" in split.path
        raise BadInput("is a web page, not JSON", fix=f"use the raw address{f': {raw}' if known else ' of the file'}")
    return content


def _refused(code: int) -> BadInput:
    """Return the error for a status, with the standard reason phrase."""
    words = f"{code} {responses.get(code, '')}".rstrip()
    fix = "it needs other credentials" if code in (401, 403, 407) else "check the address"
    return BadInput(f"is answered by {words}", fix=fix)
