"""Removal of secrets from messages before they are shown or written."""

from __future__ import annotations

import json
import re
from typing import Any

from mcp_bindgen.spec.json import is_array, is_json_type, is_object

REDACTED = "[redacted]"
CREDENTIAL_NAMES = r"cookie|credentials?|dpop|jwt|passphrase|passw(?:or)?d|[\w-]pwd|secret"
"""Ends of names of secrets, in messages, headers, URLs and command lines."""

_PAGE = r"(?![\w-]*(?:continuation|max|next|page|progress|sync)[-_]token)"
_NAMES = (
    rf"(?:proxy-?)?authorization|mcp-session-id|(?:access|refresh|id|auth|bearer|session|{_PAGE}[\w-]*[-_])?token|"
    rf"[\w-]*(?:(?:api|access|private|secret|subscription)[-_]?key|{CREDENTIAL_NAMES})"
)
_SECRET = re.compile(_NAMES, re.IGNORECASE)
"""Names of members whose texts and numbers are secrets; `progressToken` is none."""
_IN_URLS = rf"[\w-]*(?:token|key|signature|session[-_]?id|{CREDENTIAL_NAMES})|auth|code|pwd|session|sig"
_SCHEMES = (
    r"((?i:bearer|dpop)(?![ \t]+(?:auth[a-z]+|credentials?|tokens?)[,.;:)]?(?:\s|$))|"
    r"(?i:basic)(?=[ \t]+\S*(?:[a-z][A-Z]|[0-9+/=])))"
)
"""Schemes before credentials; before other words they are prose."""
_PLAIN = r"(?!(?:bool(?:ean)?|false|int(?:eger)?|none|null|number|optional|required|str(?:ing)?|true)\b)"
_SCHEME = r"(?:(?:apikey|basic|bearer|digest|dpop|token)[ \t]+)?"
_VALUES = (
    r"(?(close)|(?<!:))(?P<quote>\\{0,15}[\"'])[^\n]*?(?:(?<!\\)(?P=quote)|$)",  # the end may be cut off
    r"(?<==)[^&#\s\"'(=>][^&#\s\"'(]*",  # in a URL, a form or a shell
    r"\[[^\[\]{}\n]*(?:\]|$)",  # a list
    r"[\w.-]+=[^\n\"']*",  # cookies
    rf"{_PLAIN}{_SCHEME}[^\s\"'\\(\[{{<][^\s\"'(]*(?=[ \t]*(?:[,}}]|$)|[\"'])",  # a word at the end; else it is prose
)
_IN_TEXT = (
    (rf"\b{_SCHEMES}[ \t]+[\w.~+/=-]{{6,}}", rf"\1 {REDACTED}"),
    (rf"(?i)((?:[?&#]|\A(?=\S*&\S*\Z))(?:{_IN_URLS})=)[^&#\s\"']+", rf"\1{REDACTED}"),
    (
        rf"(?im)((?<![\w-])(?:{_NAMES})(?P<close>\\{{0,15}}[\"'])?\s{{0,99}}[:=]\s{{0,99}})(?:{'|'.join(_VALUES)})",
        rf"\1\g<quote>{REDACTED}\g<quote>",
    ),
    (r"://[^/?#\s\"']+@", f"://{REDACTED}@"),
)
"""Secrets inside texts: credentials of HTTP, parameters of URLs and forms, settings, and users in URLs."""
_JSON = re.compile(r"\{\s{0,99}\"|\[\s{0,99}[\[{\"]")
_MAX_FAILURES = 100
"""Maximum number of places in a text that begin like JSON and are none, which limits the time."""

_MAY_CONTAIN = re.compile(
    rb"authorization|cookie|credential|jwt|key|passw|passphrase|pwd|secret|session|token|\"env\"|bearer|basic|dpop|://|[?&#\\]",
    re.IGNORECASE,
)
"""Bytes without which a JSON text has no secret; a backslash may begin an escaped letter."""


def may_contain_secrets(text: bytes) -> bool:
    """Return whether a JSON text must be searched for secrets; spares most messages the search."""
    return _MAY_CONTAIN.search(text) is not None


def redacted(value: Any, *, is_secret: bool = False) -> Any:
    """Return a JSON value with its secrets replaced; objects below such names keep their structure."""
    if is_object(value):
        named = value.get("name")  # as in `{"name": "password", "value": "..."}`
        return {
            redacted_text(key): _member(named if key == "value" and isinstance(named, str) else key, member)
            for key, member in value.items()
        }
    if is_array(value):
        return [redacted(member, is_secret=is_secret) for member in value]
    if isinstance(value, str):
        return REDACTED if is_secret else redacted_text(value)
    return REDACTED if is_secret and is_json_type(value, "number") else value


def _member(key: str, value: Any) -> Any:
    if key == "env" and is_object(value):
        return {name: redacted(member, is_secret=True) for name, member in value.items()}
    return redacted(value, is_secret=_SECRET.fullmatch(key) is not None)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("a repeated member would be lost")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_members)


def redacted_text(text: str) -> str:
    """Return a text with its secrets replaced; JSON in it is searched like other JSON."""
    if not may_contain_secrets(text.encode("utf-8", "replace")):
        return text
    parts, begin, position, failure_count = list[str](), 0, 0, 0
    while failure_count < _MAX_FAILURES and (found := _JSON.search(text, position)):
        try:
            value, position = _DECODER.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            failure_count, position = failure_count + 1, found.end()
            continue
        shown = redacted(value)
        as_json = text[found.start() : position] if shown == value else json.dumps(shown, ensure_ascii=False)
        parts += _without_secrets(text[begin : found.start()]), as_json
        begin = position
    return "".join([*parts, _without_secrets(text[begin:])])


def _without_secrets(text: str) -> str:
    for pattern, replacement in _IN_TEXT:
        text = re.sub(pattern, replacement, text)
    return text
