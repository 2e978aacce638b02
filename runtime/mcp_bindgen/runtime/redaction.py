"""Credentials in the text of log records."""

from __future__ import annotations

import os
import re
from functools import cache


@cache
def _secrets() -> re.Pattern[str]:
    """Return the pattern of credentials, with the text that stays in a group.

    They are the values of secret environment variables, user and query of URLs, the values of credential headers and
    settings, and tokens after their scheme.
    """
    is_secret = re.compile("TOKEN|SECRET|PASSW|CREDENTIAL|KEY", re.IGNORECASE).search
    values = (re.escape(value) for name, value in os.environ.items() if is_secret(name) and len(value) > 7)
    name = r"(?<![\w-])[\w-]{0,40}"
    header = rf"{name}(?:authorization|cookie|api[-_]?key|passw\w{{0,9}}|secret)"
    setting = rf"(?:{header}|{name}(?:token|verifier|assertion))"
    return re.compile(
        rf"(?:{'|'.join(sorted(values, key=len, reverse=True)) or '(?!)'})"
        r"|(\w://)[^\s/?#\"']*@|(\?)(?=[\w.~%-]+=)[^\s\"'>)]+|(\b(?:bearer|basic|dpop)\s+)[\w.~+/=:-]{16,}"
        rf"|(\beyJ)[\w-]{{8,}}\.[\w.-]+|({setting}=)[^\s\"'&;,]+"
        rf"|({setting}(?:[\"'],?:?\s*|=)b?[\"']|{header}:\s)(?:[^\\\"'\r\n]|\\.)+",
        re.IGNORECASE,
    )


def without_secrets(text: str) -> str:
    """Return a text with `...` in place of credentials."""
    return _secrets().sub(lambda found: f"{found[found.lastindex] if found.lastindex else ''}...", text)
