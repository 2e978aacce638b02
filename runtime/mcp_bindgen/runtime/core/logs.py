"""Log, with the text of others made harmless: what a peer sends must not forge lines, steer terminals or fill disks."""

from __future__ import annotations

import logging
from typing import Any

MOST = 2000
"""The characters of a message in the log; the rest is left out."""


def harmless(text: str) -> str:
    """Return text as one line of bounded length: control characters, line ends and the like are escaped."""
    shown = text if len(text) <= MOST else f"{text[:MOST]}... ({len(text)} characters)"
    if shown.isprintable():
        return shown
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in shown
    )


class _Harmless(logging.Filter):
    """Makes records harmless; the lines of a traceback are indented, so none of them looks like a record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = harmless(record.getMessage()), None
        error: Any = record.exc_info
        if error and not record.exc_text:
            lines = logging.Formatter().formatException(error).splitlines()
            record.exc_text = "\n".join(f"  {harmless(line)}" for line in lines)
        return True


log = logging.getLogger("mcp_bindgen")
log.addFilter(_Harmless())

audit = logging.getLogger("mcp_bindgen.audit")
"""Who was refused what, and why: a logger of its own, so that it can be kept apart."""
audit.addFilter(_Harmless())

servers = logging.getLogger("mcp_bindgen.servers")
"""What servers write to stderr, line by line: a logger of its own, so that it can be kept apart."""
servers.addFilter(_Harmless())
