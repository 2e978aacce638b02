"""Removal of secrets from messages before they are shown or written."""

from __future__ import annotations

import re
from typing import Any

from mcp_bindgen.spec.json import is_array, is_json_type, is_object

REDACTED = "[redacted]"

_NAMES = (
    r"(?:proxy-?)?authorization|dpop|mcp-session-id|(?:(?:access|refresh|id|auth|bearer|session)[-_]?)?token|"
    r"[\w-]*(?:api|access|private|secret|subscription)[-_]?key|[\w-]*passw(?:or)?d|passphrase|[\w-]*secret"
)
_SECRET = re.compile(rf"{_NAMES}|(?:set-?)?cookie", re.IGNORECASE)
"""Names of members whose texts and numbers are secrets; `progressToken` is none."""
_IN_URLS = r"[\w-]*(?:token|key|signature|credential|session[-_]?id)|auth|code|jwt|pwd|session|sig"
_IN_TEXT = (
    (re.compile(r"\b(Bearer|Basic|DPoP) +[\w.~+/=-]{6,}"), rf"\1 {REDACTED}"),
    (re.compile(rf"([?&#](?:{_NAMES}|{_IN_URLS})=)[^&#\s\"']+", re.IGNORECASE), rf"\1{REDACTED}"),
    (re.compile(r"://[^/?#\s\"']+@"), f"://{REDACTED}@"),
)
"""Secrets inside texts: credentials of HTTP, parameters of URLs, and user names with passwords in URLs."""


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
    """Return a text with its secrets replaced."""
    for pattern, replacement in _IN_TEXT:
        text = pattern.sub(replacement, text)
    return text
