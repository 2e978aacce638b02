"""Compare the URIs of resources (RFC 3986, section 6).

Three forms of a URI answer three questions. `canonical` tells whether two URIs name one resource: section 6.2.2, which
holds for every scheme. `lineage` tells which resources lie above a URI, for subscriptions. `rule_keys` tells which
access rules a URI may fall under; there the answer errs on the safe side, because a handler may read more into a URI
than RFC 3986 does: it may decode twice, take an encoded slash for a slash, or know nothing of authorities.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote

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
    high + low: char if _UNRESERVED.fullmatch(char := chr(int(high + low, 16))) else f"%{high}{low}".upper()
    for high in _DIGITS
    for low in _DIGITS
}
_PARTS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^?#]*)(.*)", re.DOTALL)
_TRIPLET = re.compile(r"%..")
_SLASHES = re.compile(r"[^:/{}]*:(/*)")
_IGNORED = dict.fromkeys((*range(0x21), 0x7F))  # readers of URIs strip these
_DEFAULT_PORTS = {"http": ":80", "ws": ":80", "https": ":443", "wss": ":443"}
_MAX_DECODINGS = 4  # a handler that decodes more often is not considered
_MAX_LEVELS = 100  # the resources above a URI that are considered


def canonical(uri: str, *, fold_host: bool = True) -> str:
    """Return the canonical form of a URI (RFC 3986, section 6.2.2).

    The scheme and the host are in lower case, unreserved characters are not percent-encoded, hexadecimal digits are in
    upper case, and an absolute path has no dot segments. Characters that no URI may contain are percent-encoded as
    UTF-8 (RFC 3987, section 3.1), as is a percent sign that encodes nothing. Section 6.2.3 is left out: whether
    `x://a` and `x://a/` are one resource depends on the scheme. Unicode normal forms and punycode stay as they are.

    Args:
        uri: The URI, or a text that is none; one of more than `MAX_URI_CHARACTERS` is returned as it is.
        fold_host: Whether the host is put into lower case.
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


# --- access rules ---------------------------------------------------------------------------------------------


def readings(uri: str, template: str) -> list[str]:
    """Return the forms of a URI that a handler may read, in which a URI template may match it.

    These are the canonical form, that of each decoding, and the keys of access rules with as many slashes behind the
    scheme, and at the end, as the template has.
    """
    slashes = _SLASHES.match(template)
    return _readings(uri, slashes[1] if slashes else "", "/" if template.endswith("/") else "")


@lru_cache(maxsize=4)
def _readings(uri: str, slashes: str, end: str) -> list[str]:
    head, tails = _split(uri)
    found = dict.fromkeys(canonical(form) for form in _decodings(uri))
    for form in _decodings(head):
        for scheme, _, rest in (key.partition(":") for key in _squeezed(form)):
            found |= dict.fromkeys(encoded(f"{scheme}:{slashes}{rest}{end}{tail}") for tail in tails)
    return list(found)


@lru_cache(maxsize=4)
def rule_keys(uri: str) -> list[str]:
    """Return the keys of the access rules that may hold for a URI; the first one is that of a rule about just this URI.

    Rules about a URI hold for it with any query, fragment and user. These make no difference: the number of slashes,
    slashes at the end, backslashes, dots at the end of the host, the default port, control characters and spaces, and
    how often something is percent-encoded. A name without a colon is no URI; its only key is the name.
    """
    if ":" not in uri and "%" not in uri:
        return [uri]
    head, tails = _split(uri)
    return list(dict.fromkeys(f"{key}{tail}" for key in _squeezed(_decodings(head)[-1]) for tail in tails))


def _split(uri: str) -> tuple[str, list[str]]:
    """Return a URI without its query and fragment, and what rules may have behind that, decoded."""
    before, number, fragment = uri.partition("#")
    head, mark, query = before.partition("?")
    tails = (_decodings(tail)[-1] for tail in (mark + query + number + fragment, mark + query, ""))
    return head, list(dict.fromkeys(tail.rstrip("?#") and tail for tail in tails))


def _squeezed(head: str) -> list[str]:
    """Return a URI without its query and fragment as its scheme and the segments that are left of it.

    The second one, where there is a user, is without that.
    """
    scheme, colon, rest = head.translate(_IGNORED).replace("\\", "/").partition(":")
    scheme, hosts = scheme.lower(), [""]
    if rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        host = authority.lower().removesuffix(_DEFAULT_PORTS.get(scheme, ":")).rstrip(".:")
        hosts = [f"{one}{slash}" for one in dict.fromkeys((host, host.rpartition("@")[2]))]
    return [f"{scheme}{colon}{'/'.join(_segments(host + rest))}" for host in hosts]


def _segments(path: str) -> list[str]:
    """Return the segments of a path that are left without empty and dot segments."""
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment not in ("", "."):
            segments.append(segment)
    return segments


def _decodings(text: str) -> list[str]:
    """Return a text, and it with all percent-encodings decoded, and those that this brings up, and so on."""
    found = [text]
    while len(found) <= _MAX_DECODINGS and "%" in found[-1] and (text := unquote(found[-1])) != found[-1]:
        found.append(text)
    return found
