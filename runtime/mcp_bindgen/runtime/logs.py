"""Logs with harmless text: a peer must not forge lines, steer terminals or fill disks."""

from __future__ import annotations

import logging
from typing import Any

FORMATS = ("text", "json")
"""The forms of log records."""

MAX_CHARACTERS = 2000
"""The characters of a message in the log; the rest is left out."""


def harmless(text: str) -> str:
    """Return text as one line of bounded length: control characters, line ends and the like are escaped."""
    shown = text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}... ({len(text)} characters)"
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in shown)


class _Harmless(logging.Filter):
    """Makes records harmless; the lines of a traceback are indented, so none of them looks like a record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = harmless(record.getMessage()), None
        error: Any = record.exc_info
        if error and not record.exc_text:
            lines = logging.Formatter().formatException(error).splitlines()
            record.exc_text = "\n".join(f"  {harmless(line)}" for line in lines)
        return True


log: logging.Logger = logging.getLogger("mcp_bindgen")
log.addFilter(_Harmless())

audit: logging.Logger = logging.getLogger("mcp_bindgen.audit")
"""Refusals and their reasons: a logger of its own, so that it can be kept apart."""
audit.addFilter(_Harmless())

servers: logging.Logger = logging.getLogger("mcp_bindgen.servers")
"""Error output of servers, line by line: a logger of its own, so that it can be kept apart."""
servers.addFilter(_Harmless())

requests: logging.Logger = logging.getLogger("mcp_bindgen.requests")
"""HTTP requests that were answered, one record each; off until its level is INFO."""
requests.setLevel(logging.WARNING)
requests.addFilter(_Harmless())
