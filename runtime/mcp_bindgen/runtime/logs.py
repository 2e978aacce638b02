"""Logs with harmless text: a peer must not forge lines, steer terminals or fill disks."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

FORMATS = ("text", "json")
"""The forms of log records."""

LEVELS = ("debug", "info", "warning", "error")
"""The levels that `run` can set."""

_LIBRARIES = (
    *("asyncio", "authlib", "hpack", "httpcore", "httpcore2", "httpx", "httpx2", "oauthlib", "redis", "urllib3"),
    *("uvicorn", "websockets"),
)
"""Loggers of libraries that record each request, some with headers: they stay at WARNING."""

MAX_CHARACTERS = 2000
"""The characters of a message in the log; the rest is left out."""


def harmless(text: str) -> str:
    """Return text as one line of bounded length: control characters, line ends and the like are escaped."""
    return _printable(text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}... ({len(text)} characters)")


def _printable(shown: str) -> str:
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in shown)


class TextFormatter(logging.Formatter):
    """Formatter that writes a record as text, without credentials; its further lines are indented."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record, with its traceback."""
        from .redaction import without_secrets  # many servers write no record

        return "\n  ".join(map(_printable, without_secrets(super().format(record)).splitlines()))


def write_to_stderr(level: str | None) -> None:
    """Log to stderr, unless the program has handlers of its own; libraries that log each request stay at WARNING.

    Args:
        level: One of `LEVELS`, for handlers of the program as well. None selects the environment variable
            `MCP_LOG_LEVEL`, else INFO for the loggers of the program and WARNING for those of this package.

    Raises:
        ValueError: There is no such level.
    """
    root, chosen = logging.getLogger(), (level or os.environ.get("MCP_LOG_LEVEL") or "").lower()
    if chosen and chosen not in LEVELS:
        raise ValueError(f"unknown log level {chosen!r}; use {', '.join(LEVELS)}")
    if not root.handlers:
        logging.basicConfig(level=logging.INFO, handlers=[logging.StreamHandler(sys.stderr)])
        root.handlers[0].setFormatter(TextFormatter("%(levelname)s %(name)s: %(message)s"))
    elif not chosen:
        return
    if chosen:
        root.setLevel(chosen.upper())
        for handler in root.handlers:
            handler.setLevel(chosen.upper())
    for quiet in map(logging.getLogger, [*_LIBRARIES, *([] if chosen else [log.name])]):
        quiet.setLevel(quiet.level or logging.WARNING)


def _make_harmless(record: logging.LogRecord) -> bool:
    """Make a record harmless; the lines of a traceback are indented, so none of them looks like a record."""
    record.msg, record.args = harmless(record.getMessage()), None
    error: Any = record.exc_info
    if error and not record.exc_text:
        lines = logging.Formatter().formatException(error).splitlines()
        record.exc_text = "\n".join(f"  {harmless(line)}" for line in lines)
    return True


log: logging.Logger = logging.getLogger("mcp_bindgen")

audit: logging.Logger = logging.getLogger("mcp_bindgen.audit")
"""Refusals and their reasons: a logger of its own, so that it can be kept apart."""

servers: logging.Logger = logging.getLogger("mcp_bindgen.servers")
"""Error output of servers, line by line: a logger of its own, so that it can be kept apart."""

requests: logging.Logger = logging.getLogger("mcp_bindgen.requests")
"""HTTP requests that were answered, one record each; off until its level is INFO."""
requests.setLevel(logging.WARNING)

for _logger in (log, audit, servers, requests):
    _logger.addFilter(_make_harmless)
