"""Logs with harmless text: a peer must not forge lines, steer terminals or fill disks."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from .model.json_types import is_object

MOST = 2000
"""The characters of a message in the log; the rest is left out."""

FORMATS = ("text", "json")
"""The forms of log records."""


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
"""Refusals and their reasons: a logger of its own, so that it can be kept apart."""
audit.addFilter(_Harmless())

servers = logging.getLogger("mcp_bindgen.servers")
"""Error output of servers, line by line: a logger of its own, so that it can be kept apart."""
servers.addFilter(_Harmless())

requests = logging.getLogger("mcp_bindgen.requests")
"""HTTP requests that were answered, one record each; off until its level is INFO."""
requests.setLevel(logging.WARNING)
requests.addFilter(_Harmless())

start = logging.getLogger("mcp_bindgen.start")
"""Messages to the operator when a server starts, where records are JSON."""

request_fields: ContextVar[Mapping[str, Any] | None] = ContextVar("request_fields", default=None)
"""Fields of the HTTP request that is being answered, if requests are logged."""


class JsonFormatter(logging.Formatter):
    """Formatter that writes a record as one line of ASCII JSON.

    Members are `time`, `level`, `logger`, `message`, the fields of its HTTP request,
    the record's own `fields`, and `exception`. No text can end the line or add a member.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        shown = {"time": time, "level": record.levelname, "logger": record.name, "message": record.getMessage()}
        own: object = vars(record).get("fields")
        fields = {**(request_fields.get() or {}), **(own if is_object(own) else {})}
        shown |= {
            str(name): _bounded(value) for name, value in fields.items() if name not in shown and value is not None
        }
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            shown["exception"] = record.exc_text
        return json.dumps(shown, default=str)


def _bounded(value: Any) -> Any:
    return value[:MOST] if isinstance(value, str) else value


def log_as_json() -> None:
    """Have the handlers of the root logger write JSON, to stderr if there is none, and record each HTTP request.

    Records that bypass the root logger, such as those of an ASGI server with its own configuration, stay as they are.
    """
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.StreamHandler(sys.stderr))
    for handler in root.handlers:
        handler.setFormatter(JsonFormatter())
    requests.setLevel(logging.INFO)
    start.setLevel(logging.INFO)
    logging.captureWarnings(True)


def use_format(name: str | None) -> None:
    """Log in a form of `FORMATS`; None selects the environment variable `MCP_LOG_FORMAT`, else text.

    Raises:
        ValueError: There is no such form.
    """
    chosen = name or os.environ.get("MCP_LOG_FORMAT") or FORMATS[0]
    if chosen not in FORMATS:
        raise ValueError(f"unknown log format {chosen!r}; use {' or '.join(FORMATS)}")
    if chosen == "json":
        log_as_json()


def announce(text: str) -> None:
    """Tell the operator that a server has started: on stderr, or as a record where records are JSON."""
    if start.isEnabledFor(logging.INFO) and any(
        isinstance(one.formatter, JsonFormatter) for one in logging.getLogger().handlers
    ):
        start.info("%s", text)
    else:
        print(text, file=sys.stderr, flush=True)
