"""Trace of a connection: each message with its time, its request, and its violations of the schema."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from hashlib import sha256
from typing import Any, Literal, NoReturn, TypeAlias

from mcp_bindgen.ir import build
from mcp_bindgen.ir.model import OTHER_SIDE
from mcp_bindgen.runtime.protocol.methods import INITIALIZE
from mcp_bindgen.spec import Store
from mcp_bindgen.spec.check import MAX_DEPTH, is_too_deep
from mcp_bindgen.spec.json import is_array, is_object
from mcp_bindgen.testing.judge import Violation, judge_of, kind_of

from .redaction import may_contain_secrets, redacted, redacted_text

Sender: TypeAlias = Literal["client", "server"]

MAX_MESSAGE_BYTES = 8 * 1024 * 1024
"""Longest message that is read; longer ones are traced without their content."""

_TOO_LONG = f"longer than {MAX_MESSAGE_BYTES} bytes; not checked"
_MAX_PENDING = 10_000  # requests without a response
_MAX_KEPT_CHARACTERS = 200  # of the id and the method of each
_MAX_NUMBER_CHARS = 20  # of a number in a reason
_VERSION = "protocolVersion"
_ANSWERED = (200, 202)
_MARKS = {"client": ">", "server": "<"}


@dataclass(frozen=True)
class TracedMessage:
    """A message as it was seen, or an HTTP request or response without a message; secrets are replaced.

    Attributes:
        seconds: Time since the trace began.
        sender: The side that sent it.
        bytes: Length of its JSON text.
        kind: `request`, `notification`, `result`, `error`, `http` without a message, or empty if it is no message.
        method: Method of the message, or of the request that it answers; empty if unknown. With the kind `http`, the
            method and the target of the HTTP request.
        id: Id of the request; `None` for notifications.
        revision: The revision that it was held against; empty if none was known.
        elapsed_ms: Milliseconds since its request, for responses.
        violations: The violations of the schema.
        message: The JSON value; if it is no JSON, the text, or nothing where the text may contain secrets.
        stream: Number of the HTTP exchange that carried it; `None` over stdio.
        http: Head of the HTTP request or response, in the first message of each; `None` in later ones and over stdio.
    """

    seconds: float
    sender: Sender
    bytes: int
    kind: str
    method: str
    id: str | int | None
    revision: str
    elapsed_ms: float | None
    violations: tuple[Violation, ...]
    message: Any
    stream: int | None = None
    http: Mapping[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """Return the message as a JSON object, one line of a recording."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the readable trace."""
        number = "" if self.id is None else f" #{json.dumps(self.id)}"
        status = None if self.http is None else self.http.get("status")
        if self.kind == "http":
            kind = "" if self.http is None or status is None else f" {self.http.get('error', status)}"
        else:
            kind = "" if self.kind in ("request", "notification") else f" {self.kind or 'no message'}"
            kind += "" if status in (None, *_ANSWERED) else f", HTTP {status}"
        elapsed = "" if self.elapsed_ms is None else f", {self.elapsed_ms:.1f} ms"
        yield f"{self.seconds:9.3f} {_MARKS[self.sender]} {self.method or '?'}{number}{kind} ({self.bytes} B{elapsed})"
        for violation in self.violations:
            yield f"{'':9} ! {violation}"


@dataclass
class Trace:
    """State of one connection: the revision, the extensions and the open requests.

    Attributes:
        write: Called with each message.
        revision: The revision that is spoken; empty before it is known.
        extensions: Ids of the extensions that a side declared.
    """

    write: Callable[[TracedMessage], None]
    revision: str = ""
    extensions: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Start the clock."""
        self._started = time.monotonic()
        self._pending: dict[tuple[Sender, str], tuple[str, float]] = {}

    @property
    def seconds(self) -> float:
        """Time since the trace began."""
        return round(time.monotonic() - self._started, 6)

    def record(
        self, sender: Sender, text: bytes, seconds: float | None = None, *, is_repeated: bool = False, **more: Any
    ) -> None:
        """Write the messages of a JSON text, one or those of a batch.

        Args:
            sender: The side that sent it.
            text: The JSON text.
            seconds: Time since the trace began; by default now.
            is_repeated: True if it may have been sent before, as in a resumed stream.
            more: Attributes of the first message.

        Raises:
            OSError: `write` failed.
        """
        now = self.seconds if seconds is None else seconds
        for message in self._read(sender, text, now, is_repeated):
            self.write(replace(message, **more) if more else message)
            more = {name: value for name, value in more.items() if name == "stream"}

    def oversized(self, sender: Sender, seconds: float, **more: Any) -> None:
        """Write a message that is longer than `MAX_MESSAGE_BYTES` and of which only the beginning was kept."""
        self.write(replace(self._unread(sender, MAX_MESSAGE_BYTES + 1, seconds, _TOO_LONG), **more))

    def _read(self, sender: Sender, text: bytes, seconds: float, is_repeated: bool) -> Iterator[TracedMessage]:
        if len(text) > MAX_MESSAGE_BYTES:
            yield self._unread(sender, len(text), seconds, _TOO_LONG)
            return
        try:
            value: Any = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
        except (ValueError, RecursionError) as error:
            shown = "" if may_contain_secrets(text) else text[:1000].decode("utf-8", "replace")
            yield self._unread(sender, len(text), seconds, f"not JSON: {error}", shown)
            return
        if text.count(b"[") + text.count(b"{") > MAX_DEPTH and is_too_deep(value):
            yield self._unread(sender, len(text), seconds, f"nested deeper than {MAX_DEPTH} levels; not checked")
            return
        for one in value if is_array(value) and value else [value]:
            if is_object(one):
                yield self._message(sender, one, text, seconds, is_repeated)
            else:
                yield self._unread(sender, len(text), seconds, "a message is a JSON object", redacted(one))

    def _unread(self, sender: Sender, size: int, seconds: float, reason: str, shown: Any = "") -> TracedMessage:
        violations = (Violation("", "JSON-RPC", reason),)
        return TracedMessage(seconds, sender, size, "", "", None, self.revision, None, violations, shown)

    def _message(
        self, sender: Sender, message: dict[str, Any], text: bytes, seconds: float, is_repeated: bool
    ) -> TracedMessage:
        kind, number = kind_of(message) or "", message.get("id")
        id_ = brief(json.dumps(number))
        requested, elapsed, found = str(message.get("method", "")), None, list[Violation]()
        if kind in ("result", "error"):
            requested, since = self._pending.pop((OTHER_SIDE[sender], id_), ("", None))
            elapsed = None if since is None else round((seconds - since) * 1000, 3)
            if since is None and number is not None and not is_repeated:
                found.append(Violation("/id", "JSON-RPC: id", "no open request has this id"))
        elif kind == "request":
            key = (sender, id_)
            if key in self._pending:
                found.append(Violation("/id", "JSON-RPC: id", "an open request has the same id"))
            elif len(self._pending) < _MAX_PENDING:
                self._pending[key] = (requested[:_MAX_KEPT_CHARACTERS], seconds)
        self._learn(kind, requested, message)
        shown = redacted(message) if may_contain_secrets(text) else message
        if self.revision:
            judge = judge_of(self.revision, tuple(sorted(self.extensions)))
            broken = judge.violations(message, requested)
            found += broken if shown is message else _without_values(broken, judge.violations(shown, requested))
        identity, method = redacted([number if isinstance(number, str | int) else None, requested])
        return TracedMessage(
            seconds, sender, len(text), kind, method, identity, self.revision, elapsed, tuple(found), shown
        )

    def _learn(self, kind: str, method: str, message: dict[str, Any]) -> None:
        """Learn the revision and the extensions from `initialize`, or from the metadata of a request."""
        body = message.get("result" if kind == "result" else "params")
        if not is_object(body):
            return
        meta = body.get("_meta")
        stated = body.get(_VERSION) if method == INITIALIZE else None
        declared = [body.get("capabilities")]
        if is_object(meta) and any("/" in key for key in meta):
            keys = meta_keys()
            stated = meta.get(keys.get(_VERSION, ""), stated)
            declared.append(meta.get(keys.get("clientCapabilities", "")))
        if isinstance(stated, str) and stated != self.revision and stated in Store().pins:
            self.revision = stated
        for capabilities in declared:
            extensions = capabilities.get("extensions") if is_object(capabilities) else None
            if is_object(extensions):
                self.extensions |= extensions.keys() & _known_extensions()


@cache
def _known_extensions() -> frozenset[str]:
    """Return the ids of all extensions with a schema, so that unknown ids cost nothing."""
    return frozenset(pin.id for pin in Store().extension_pins)


@cache
def meta_keys() -> Mapping[str, str]:
    """Return the keys of `_meta` in the newest revision that has some: `protocolVersion` -> the key, and so on."""
    store = Store()
    for revision in reversed(store.pins):
        if keys := build(store.effective(revision)).facts.meta_keys:
            return {key.rpartition("/")[2]: key for key in keys}
    return {}


def brief(text: str) -> str:
    """Return a text to keep in memory: a long one is replaced by its digest."""
    return text if len(text) <= _MAX_KEPT_CHARACTERS else sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _without_values(found: list[Violation], shown: list[Violation]) -> list[Violation]:
    """Return violations with the reasons that they have where secrets are replaced, as a reason may quote the value."""
    reasons = {(one.pointer, one.rule): one.reason for one in shown}
    places = [replace(one, pointer=redacted_text(one.pointer)) for one in found]
    return [replace(one, reason=reasons.get((one.pointer, one.rule), "the value does not fit")) for one in places]


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):  # would be `Infinity` in the recording
        raise ValueError(f"{text[:_MAX_NUMBER_CHARS]} is too large for a number")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")
