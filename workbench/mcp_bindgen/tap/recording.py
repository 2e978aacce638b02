"""Recordings: the exchanges in a file of traced messages, and the search for the one that a request repeats."""

from __future__ import annotations

import difflib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_bindgen.runtime.protocol.methods import DISCOVER, INITIALIZE
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.check import is_too_deep
from mcp_bindgen.spec.errors import printable, shortened, suggestion
from mcp_bindgen.spec.json import is_array, is_object

from .redaction import REDACTED, redacted
from .trace import TracedMessage

_MAX_LINE_BYTES = 32 * 1024 * 1024
_MAX_SHOWN = 160  # characters
_MAX_COMPARED = 2000  # characters of a request that is compared with others to name the nearest
_OPENING = (INITIALIZE, DISCOVER)
"""Requests that begin a connection; they repeat each other whatever their params are, which describe the client."""


@dataclass(eq=False)
class Question:
    """Message of the server during an exchange.

    Attributes:
        message: The request or notification.
        answer: The client's response to a request; empty if there was none.
    """

    message: Mapping[str, Any]
    answer: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def is_request(self) -> bool:
        """True if the server waits for a response."""
        return "id" in self.message


@dataclass(eq=False)
class Exchange:
    """Request of the client with the messages that followed.

    Attributes:
        line: Line of the request in the file.
        stream: Number of its HTTP exchange; `None` over stdio.
        request: The request.
        before: Messages of the server before the response.
        response: The response; empty if the recording has none.
        after: Messages of the server after it, before the next request.
    """

    line: int
    stream: int | None
    request: Mapping[str, Any]
    before: list[Question] = field(default_factory=list[Question])
    response: Mapping[str, Any] = field(default_factory=dict[str, Any])
    after: list[Question] = field(default_factory=list[Question])

    @property
    def method(self) -> str:
        """Method of the request."""
        return str(self.request["method"])

    @property
    def params(self) -> dict[str, Any]:
        """Params of the request without `_meta`."""
        return params_of(self.request)

    @property
    def title(self) -> str:
        """The request in a short line."""
        return shown(self.method, self.params)


@dataclass(frozen=True)
class Recording:
    """Recorded connection.

    Attributes:
        revision: The revision that was spoken; empty if none is known.
        exchanges: The exchanges, in the order of their requests.
        redacted: Number of messages with redacted values.
    """

    revision: str
    exchanges: tuple[Exchange, ...]
    redacted: int

    @property
    def capabilities(self) -> frozenset[str]:
        """Capabilities that the client declared."""
        found: set[str] = set()
        for exchange in self.exchanges:
            stated = params_of(exchange.request).get("capabilities") if exchange.method == INITIALIZE else None
            for value in (stated, *(meta_of(exchange.request).values())):
                found |= set(value) if is_object(value) else set()
        return frozenset(found)


def params_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params of a request without `_meta`."""
    params = request.get("params")
    return {key: value for key, value in params.items() if key != "_meta"} if is_object(params) else {}


def meta_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a request; empty if it has none."""
    params = request.get("params")
    meta = params.get("_meta") if is_object(params) else None
    return meta if is_object(meta) else {}


def shown(method: str, params: Mapping[str, Any]) -> str:
    """Return a request in a short line."""
    text = json.dumps(params, ensure_ascii=False) if params else ""
    return printable(f"{method} {shortened(text, _MAX_SHOWN)}".strip())


def canonical(value: Any) -> str:
    """Return a JSON text that equal values share: members in order, `1.0` as `1`."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if is_object(value):
        return {key: _plain(member) for key, member in value.items()}
    if is_array(value):
        return list(map(_plain, value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


def key_of(method: str, params: Mapping[str, Any]) -> str:
    """Return the text that equal requests share; secrets are replaced, as they are in recordings."""
    return method if method in _OPENING else f"{method} {canonical(redacted(params))}"


# --- reading --------------------------------------------------------------------------------------------------


def read_recording(path: Path) -> Recording:
    """Return the recording in a file that `tap --out` wrote.

    Raises:
        BadInput: The file cannot be read, or a line of it is no traced message.
    """
    try:
        with path.open("rb") as file:
            return recording_of(list(_lines(path, iter(lambda: file.readline(_MAX_LINE_BYTES + 1), b""))))
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", file=path) from None


def _lines(path: Path, lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    fix = "give a file that `mcp-bindgen tap --out` wrote"
    for number, line in enumerate(lines, 1):
        try:
            value: Any = json.loads(line) if len(line) <= _MAX_LINE_BYTES else None
        except (ValueError, RecursionError):
            value = None
        message = value.get("message") if is_object(value) else None
        if not is_object(value) or value.get("sender") not in ("client", "server") or "kind" not in value:
            raise BadInput(f"line {number} is no traced message", file=path, fix=fix)
        if value["kind"] not in ("", "http") and (not is_object(message) or is_too_deep(message)):
            raise BadInput(f"line {number} has no message", file=path, fix=fix)
        yield value


def recording_of(messages: Iterable[Mapping[str, Any] | TracedMessage]) -> Recording:
    """Return the recording of traced messages, or of their JSON objects."""
    revision, redacted_count = "", 0
    reader = _Reader()
    for number, one in enumerate(messages, 1):
        entry = {**(one.document() if isinstance(one, TracedMessage) else one), "line": number}
        if entry["kind"] in ("", "http"):
            continue
        revision = str(entry.get("revision") or revision)
        redacted_count += REDACTED in json.dumps(entry["message"])
        reader.read(entry)
    return Recording(revision if revision in Store().pins else "", tuple(reader.exchanges), redacted_count)


class _Reader:
    """Reader of messages in their order: finds the exchange of each.

    Attributes:
        exchanges: The exchanges so far, in the order of their requests.
    """

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self._open: list[Exchange] = []
        self._asked: dict[str, Question] = {}

    def read(self, entry: Mapping[str, Any]) -> None:
        """Take the next message."""
        message, kind, stream = entry["message"], entry["kind"], entry.get("stream")
        number = json.dumps(message.get("id"))
        if entry["sender"] == "client":
            if kind == "request" and isinstance(message.get("method"), str):
                self.exchanges.append(Exchange(entry["line"], stream, message))
                self._open.append(self.exchanges[-1])
            elif kind in ("result", "error") and number in self._asked:
                self._asked.pop(number).answer = message
        elif kind in ("result", "error"):
            same = [one for one in self._open if json.dumps(one.request.get("id")) == number]
            for one in [one for one in same if one.stream == stream][-1:] or same[-1:]:
                one.response = message
                self._open.remove(one)
        else:
            question = Question(message)
            if question.is_request:
                self._asked[number] = question
            owner = self._owner(message, stream)
            if owner is not None:
                owner.before.append(question)
            elif self.exchanges:
                self.exchanges[-1].after.append(question)

    def _owner(self, message: Mapping[str, Any], stream: int | None) -> Exchange | None:
        """Return the open exchange of a message: by its progress token, else by its stream, else the newest."""
        token = params_of(message).get("progressToken")
        if token is not None:
            found = [one for one in self._open if meta_of(one.request).get("progressToken") == token]
        else:
            same = [one for one in self._open if stream is not None and one.stream == stream]
            found = same or self._open
        return found[-1] if found else None


# --- matching -------------------------------------------------------------------------------------------------


class Matching:
    """Search for recorded exchanges; equal requests get their exchanges in turn, and then the last one again.

    Args:
        exchanges: The recorded exchanges.
    """

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        self._by_key: dict[str, list[Exchange]] = defaultdict(list)
        self._turns: dict[str, int] = defaultdict(int)
        for exchange in exchanges:
            self._by_key[key_of(exchange.method, exchange.params)].append(exchange)

    def find(self, method: str, params: Mapping[str, Any]) -> Exchange | None:
        """Return the exchange that a request repeats; `None` if there is none."""
        key = key_of(method, params)
        known = self._by_key.get(key)
        if known is None:
            return None
        turn, self._turns[key] = self._turns[key], self._turns[key] + 1
        return known[min(turn, len(known) - 1)]

    def has(self, method: str) -> bool:
        """Return whether a request of a method was recorded."""
        return any(found[0].method == method for found in self._by_key.values())

    def nearest(self, method: str, params: Mapping[str, Any]) -> str:
        """Return words that name the nearest recorded request."""
        methods = list(dict.fromkeys(found[0].method for found in self._by_key.values()))
        if method not in methods:
            known = suggestion(method, methods, f"it has {', '.join(methods[:10]) or 'no request'}")
            return f"the recording has no {method}; {known}"
        wanted = key_of(method, params)[:_MAX_COMPARED]
        same = [found[0] for found in self._by_key.values() if found[0].method == method]

        def likeness(one: Exchange) -> float:
            key = key_of(one.method, one.params)[:_MAX_COMPARED]
            return difflib.SequenceMatcher(None, wanted, key, autojunk=False).ratio()

        best = max(same[:200], key=likeness)
        return f"the recording has no {method} with these params; the nearest is line {best.line}: {best.title}"
