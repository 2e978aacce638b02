"""Compare the URIs of resources (RFC 3986, section 6).

`canonical` is equal for two URIs of one resource: section 6.2.2, which holds for every scheme. `lineage` lists the
resources above a URI, for subscriptions.
"""

from __future__ import annotations

import re
from functools import lru_cache

MAX_URI_CHARACTERS = 8192
"""Characters of a URI; a longer one is compared as it is, and refused where access is controlled."""

_REST = r"[\w\-.~:/?#\[\]@!$&'()*+,;=]*"
_RESERVED = r"%(?!2[DE]|3\d|4[1-9A-F]|5[\dAF]|6[1-9A-F]|7[\dAE])[\dA-F]{2}"
_CANONICAL, _WITH_HOST_AS_SENT = (
    re.compile(
        rf"[a-z][a-z0-9+.\-]*:(?://{host}(?:{_RESERVED}{host})*(?=[/?#]|\Z)|(?!//)){_REST}(?:{_RESERVED}{_REST})*",
        re.ASCII,
    )
    for host in (r"[a-z0-9\-._~:\[\]!$&'()*+,;=]*", r"[\w\-.~:\[\]!$&'()*+,;=]*")
)
_UNUSUAL = re.compile(r"[^\w\-.~:/?#\[\]@!$&'()*+,;=%]", re.ASCII)
_ENCODED = {code: f"%{code:02X}" for code in range(256) if _UNUSUAL.fullmatch(chr(code))}
_UNRESERVED = re.compile(r"[\w\-.~]", re.ASCII)
_DIGITS = "0123456789ABCDEFabcdef"
_OCTETS = {
    high + low: _char if _UNRESERVED.fullmatch(_char := chr(int(high + low, 16))) else f"%{high}{low}".upper()
    for high in _DIGITS
    for low in _DIGITS
}
_PARTS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^?#]*)(.*)", re.DOTALL)
_TRIPLET = re.compile(r"%..")
_MAX_LEVELS = 100  # the resources above a URI that are considered


def canonical(uri: str, *, fold_host: bool = True) -> str:
    """Return the canonical form of a URI (RFC 3986, section 6.2.2).

    The scheme and the host are in lower case, unreserved characters are not percent-encoded, hexadecimal digits are in
    upper case, and an absolute path has no dot segments. Characters that no URI may contain are percent-encoded as
    UTF-8 (RFC 3987, section 3.1), as is a percent sign that encodes nothing. Section 6.2.3 is left out: whether
    `x://a` and `x://a/` are one resource depends on the scheme. Unicode normal forms and punycode stay as they are.

    Args:
        uri: The URI, or a text that is none; one of more than `MAX_URI_CHARACTERS` is returned as it is.
        fold_host: True if the host is put into lower case.
    """
    plain = _CANONICAL if fold_host else _WITH_HOST_AS_SENT
    if len(uri) > MAX_URI_CHARACTERS or ("/." not in uri and plain.fullmatch(uri)):
        return uri
    found = _PARTS.fullmatch(encoded(uri))
    assert found is not None
    scheme, authority, path, rest = found.groups()
    if authority is not None or path.startswith("/"):
        path = _without_dots(path)
    if authority is not None:
        user, at, host = authority.rpartition("@")
        path = f"//{user}{at}{folded(host) if fold_host else host}{path}"
    elif path.startswith("//"):
        path = f"/.{path}"  # else the path would become an authority
    return f"{path}{rest}" if scheme is None else f"{scheme.lower()}:{path}{rest}"


def encoded(text: str) -> str:
    """Return a text with the percent-encodings of the canonical form: none of unreserved characters, all others."""
    if "%" in text:
        first, *others = text.split("%")
        known = _OCTETS.get
        text = first + "".join([f"{known(one[:2]) or '%25' + one[:2]}{one[2:]}" for one in others])
    if _UNUSUAL.search(text):
        text = text.encode("utf-8", "surrogatepass").decode("latin-1").translate(_ENCODED)
    return text


def folded(text: str) -> str:
    """Return a text in lower case, except for the digits of percent-encodings."""
    return _TRIPLET.sub(lambda found: found[0].upper(), text.lower())


def _without_dots(path: str) -> str:
    """Return an absolute or empty path without dot segments (RFC 3986, section 5.2.4)."""
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


# --- subscriptions --------------------------------------------------------------------------------------------


def followed_key(uri: str) -> str:
    """Return the form of a URI in which subscriptions keep it."""
    return canonical(uri).rstrip("/")


@lru_cache(maxsize=16)
def lineage(uri: str) -> frozenset[str]:
    """Return the `followed_key` of a resource and of those above it: the subscriptions that hear of its changes."""
    text = canonical(uri)
    path, *_ = re.split(r"[?#]", text, maxsplit=1)
    found, end = {text.rstrip("/")}, len(path)
    for _ in range(_MAX_LEVELS):
        end = path.rfind("/", 0, end)
        if end < 0:
            break
        found.add(path[:end].rstrip("/"))
    return frozenset(found)
