"""Log records as text or as JSON, and announcements to the operator."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from .logs import FORMATS, MAX_CHARACTERS, requests
from .model.json_types import is_array, is_object
from .redaction import without_secrets

start: logging.Logger = logging.getLogger("mcp_bindgen.start")
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
        message = without_secrets(record.getMessage())
        shown = {"time": time, "level": record.levelname, "logger": record.name, "message": message}
        own: object = vars(record).get("fields")
        fields = {**(request_fields.get() or {}), **(own if is_object(own) else {})}
        for name, value in fields.items():
            if value is not None:
                shown.setdefault(str(name), _redacted(value, str(name)))
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            shown["exception"] = without_secrets(record.exc_text)
        return json.dumps(shown)


def _redacted(value: Any, name: str = "") -> Any:
    """Return a JSON value without credentials in its texts and in members that are named so; other values as texts."""
    if is_object(value):
        return {str(key): _redacted(member, str(key)) for key, member in value.items()}
    if is_array(value):
        return [_redacted(member, name) for member in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    is_secret = without_secrets(f"{name}=x").endswith("...")
    return "..." if is_secret else without_secrets(str(value)[:MAX_CHARACTERS])


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
    handlers = logging.getLogger().handlers
    if start.isEnabledFor(logging.INFO) and any(isinstance(one.formatter, JsonFormatter) for one in handlers):
        start.info("%s", text)
    else:
        print(text, file=sys.stderr, flush=True)
