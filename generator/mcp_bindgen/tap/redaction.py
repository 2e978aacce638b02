"""Removal of secrets from messages before they are shown or written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from mcp_bindgen.spec.json import is_array, is_json_type, is_object

REDACTED = "[redacted]"

_NAMES = (
    r"(?:proxy-?)?authorization|dpop|mcp-session-id|(?:(?:access|refresh|id|auth|bearer|session)[-_]?)?token|"
    r"[\w-]*(?:api|access|private|secret|subscription)[-_]?key|[\w-]*passw(?:or)?d|passphrase|[\w-]*secret|"
    r"(?:set-?)?cookie"
)
_SECRET = re.compile(_NAMES, re.IGNORECASE)
"""Names of members whose texts and numbers are secrets; `progressToken` is none."""
_IN_URLS = r"[\w-]*(?:token|key|signature|credential|session[-_]?id)|auth|code|jwt|pwd|session|sig"
_AFTER_BASIC = r"(?=[ \t]+[a-z]*[A-Z0-9+/=])"  # other words are prose
_QUOTE = r"(?P<quote>(?P<escape>\\{1,9})?[\"'])"
_VALUE = r"(?P=quote)(?:(?(escape)\\+[^\\\n]|\\.)|[^\\\n])*?(?:(?P=quote)|(?=\n)|\Z)|-?\d[\d.eE+-]*|\[[^\]\n]*\]?"
_MEMBER = rf"(?i)({_QUOTE}(?:{_NAMES})(?P=quote)\s{{0,99}}:\s{{0,99}})(?:{_VALUE})"
_IN_TEXT = (
    (re.compile(rf"\b((?i:bearer|dpop)|Basic|(?i:basic){_AFTER_BASIC})[ \t]+[\w.~+/=-]{{6,}}"), rf"\1 {REDACTED}"),
    (re.compile(rf"(?i)((?:[?&#]|\A(?=\S*\Z))(?:{_NAMES}|{_IN_URLS})=)[^&#\s\"']+"), rf"\1{REDACTED}"),
    (re.compile(rf"(?i)((?<![\w-])(?:{_NAMES})=)[^&#\s\"']+"), rf"\1{REDACTED}"),
    (re.compile(_MEMBER), rf"\1\g<quote>{REDACTED}\g<quote>"),
    (re.compile(r"://[^/?#\s\"']+@"), f"://{REDACTED}@"),
)
"""Secrets inside texts: credentials of HTTP, parameters of URLs and forms, members of JSON, and users in URLs."""
_JSON = re.compile(r"\{\s{0,99}\"|\[\s{0,99}[\[{\"]")
_MAX_FAILURES = 100
"""Maximum number of places in a text that begin like JSON and are none, which limits the time."""

_MAY_CONTAIN = re.compile(
    rb"authorization|cookie|key|passw|passphrase|secret|session|token|\"env\"|bearer|basic|dpop|://|[?&#\\]",
    re.IGNORECASE,
)
"""Bytes without which a JSON text has no secret; a backslash may begin an escaped letter."""


def may_contain_secrets(text: bytes) -> bool:
    """Return whether a JSON text must be searched for secrets; spares most messages the search."""
    return _MAY_CONTAIN.search(text) is not None


def redacted(value: Any, *, is_secret: bool = False) -> Any:
    """Return a JSON value with its secrets replaced; objects below such names keep their structure."""
    if is_object(value):
        return {redacted_text(key): _member(key, member) for key, member in value.items()}
    if is_array(value):
        return [redacted(member, is_secret=is_secret) for member in value]
    if isinstance(value, str):
        return REDACTED if is_secret else redacted_text(value)
    return REDACTED if is_secret and is_json_type(value, "number") else value


def _member(key: str, value: Any) -> Any:
    if key == "env" and is_object(value):
        return {name: redacted(member, is_secret=True) for name, member in value.items()}
    return redacted(value, is_secret=_SECRET.fullmatch(key) is not None)


def redacted_text(text: str) -> str:
    """Return a text with its secrets replaced; JSON in it is searched like other JSON."""
    if not may_contain_secrets(text.encode("utf-8", "replace")):
        return text
    text = "".join(_parts(text))
    for pattern, replacement in _IN_TEXT:
        text = pattern.sub(replacement, text)
    return text


def _parts(text: str) -> Iterator[str]:
    """Yield the parts of a text: JSON objects and arrays without their secrets, and all between them."""
    done = failure_count = 0
    while failure_count < _MAX_FAILURES and (found := _JSON.search(text, done)):
        begin = found.start()
        yield text[done:begin]
        try:
            value, done = json.JSONDecoder().raw_decode(text, begin)
            shown = redacted(value)
            yield text[begin:done] if shown == value else json.dumps(shown, ensure_ascii=False)
        except (ValueError, RecursionError):
            failure_count, done = failure_count + 1, found.end()
            yield found[0]
    yield text[done:]
