"""Checker of one side of a connection: it must send the responses that it owes and no other messages.

It shares no code with the runtime: it parses with the standard library and validates against the schemas.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.harness.checked_connections import Oracle, oracle, strictly

from .failure import Violation

Id = int | str

DEEPEST = 150
"""Deepest nesting that a side must read; a parser may reject messages that are nested more deeply."""

LATE = 20.0
"""Seconds after which an optional response is no longer accepted."""

ENDLESS = {"subscriptions/listen"}
"""Methods of requests that get their response when they end, which may be never."""


@dataclass
class Reading:
    """Responses that a message requires of its receiver.

    Attributes:
        owed: Requests that must get exactly one response: id, method and progress token.
        possible: Requests that may get a response, because parsers may accept or reject such a message.
        nameless: Number of responses without an id that are allowed.
        cancels: Ids of cancelled requests, which need no response.
    """

    owed: list[tuple[Id, str, Any]] = field(default_factory=list)
    possible: list[tuple[Id, str, Any]] = field(default_factory=list)
    nameless: int = 0
    cancels: list[Id] = field(default_factory=list)


def read(data: bytes, batches: bool | None) -> Reading:
    """Read a message.

    Args:
        data: The message.
        batches: Whether it may be a batch; `None` if that is unknown.
    """
    found = Reading(nameless=1)
    if not data.strip():
        return found
    try:
        document = strictly(data)
        json.dumps(document, ensure_ascii=False).encode()  # rejects unpaired surrogates
    except (ValueError, RecursionError):
        return found
    parts = document if isinstance(document, list) and document and batches is not False else [document]
    found.nameless = 0
    for part in parts:
        id_, method = asked(part)
        is_notification = isinstance(part, dict) and isinstance(part.get("method"), str) and "id" not in part
        if id_ is not None:
            found.owed.append((id_, method, _token(part)))
        elif not is_notification:
            found.nameless += 1
        if isinstance(part, dict) and part.get("method") == "notifications/cancelled":
            params = part.get("params")
            cancelled = as_id(params.get("requestId")) if isinstance(params, dict) else None
            found.cancels += [] if cancelled is None else [cancelled]
    deep = data.count(b"[") + data.count(b"{") > DEEPEST
    if (isinstance(document, list) and batches is None) or deep or (len(data) > 4000 and _has_long_number(data)):
        found.possible, found.owed = found.owed, []
        found.nameless += 1
    return found


def asked(message: Any) -> tuple[Id | None, str]:
    """Return the id of a request, or None if the message needs no response, and its method, or an empty string."""
    if not isinstance(message, dict) or ("method" not in message and ("result" in message or "error" in message)):
        return None, ""
    method = message.get("method")
    return as_id(message.get("id")), method if isinstance(method, str) else ""


def as_id(value: Any) -> Id | None:
    """Return a JSON value as an id, or None if it is neither a string nor an integer (1.0 is an integer)."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def _token(request: Any) -> Any:
    params = request.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, int | str | float) else None


def _has_long_number(data: bytes) -> bool:
    """Return True if data has a number that is too long for some parsers: more than 4,000 digits."""
    return any(len(digits) > 4000 for digits in re.findall(rb"\d+", data))


class Checker:
    """Checker of the messages sent by one side of a connection.

    Args:
        revisions: Revisions with schemas to check; a message must be valid in at least one revision.
        batches: Whether the side may receive batches; `None` if that is unknown.
        is_asked: Whether the other side may send requests; if not, they get no response.

    Attributes:
        outstanding: Id -> number of responses that the side still owes.
    """

    def __init__(self, revisions: list[str], batches: bool | None, *, is_asked: bool = True) -> None:
        self._batches, self._is_asked = batches, is_asked
        self.outstanding: Counter[Id] = Counter()
        self._requests: list[Any] = []
        self._oracles: list[Oracle] = [oracle(revision) for revision in revisions]
        self._methods: dict[Id, list[tuple[str, Any]]] = {}
        self._forgiven: Counter[Id] = Counter()
        self._since: dict[Id, float] = {}
        self._nameless = 0
        self._used: set[Id] = set()

    def sent(self, data: bytes, *, certain: bool = True) -> Reading:
        """Record a message sent to the side; if not `certain`, it may be lost and needs no response."""
        reading = read(data, self._batches)
        if not self._is_asked:
            reading.owed, reading.possible = [], []
        elif not certain:
            reading.owed, reading.possible = [], reading.owed + reading.possible
        for id_, method, token in reading.owed + reading.possible:
            self._methods.setdefault(id_, []).append((method, token))
        for id_, method, _ in reading.owed:
            (self._forgiven if method in ENDLESS else self.outstanding)[id_] += 1
        for id_, _, _ in reading.possible:
            self._forgive(id_, 1)
        self._nameless += reading.nameless
        self.forgive(reading.cancels)
        return reading

    def forgive(self, ids: list[Id]) -> None:
        """Record that requests need no response any more, but may still get it."""
        for id_ in ids:
            if id_ in self.outstanding:
                self._forgive(id_, self.outstanding.pop(id_))

    def may_mistake(self, ids: set[Id]) -> None:
        """Record ids of several requests: a response may match any request with its id."""
        for id_ in ids & self._methods.keys():
            self._methods[id_] += [("", None)]

    def refused(self) -> None:
        """Record that the HTTP request was refused: the error may lack an id, as the body may be unread."""
        self._nameless += 1
        self.forgive(list(self.outstanding))

    def _forgive(self, id_: Id, count: int) -> None:
        self._forgiven[id_] += count
        self._since[id_] = time.monotonic()

    def received(self, data: bytes) -> None:
        """Check a message from the side.

        Raises:
            Violation: It matches no request, violates the schemas, or comes at the wrong time.
        """
        try:
            document = strictly(data)
        except ValueError as error:
            raise Violation(f"this is no JSON: {error}: {_shown(data)}") from None
        for part in document if isinstance(document, list) else [document]:
            problems = min((one.message(part) for one in self._oracles), key=len)
            if problems:
                raise Violation(f"{problems[0][:500]}: {_shown(data)}")
            if "method" not in part:
                self.answered(part)
            elif "id" in part:
                if part["id"] in self._used:
                    raise Violation(f"an id is used twice: {_shown(part)}")
                self._used.add(part["id"])
                self._requests.append(part)
            elif part["method"] == "notifications/progress" and part["params"]["progressToken"] not in self._tokens():
                raise Violation(f"nobody waits for this progress: {_shown(part)}")

    def answered(self, answer: Any) -> None:
        """Check a response. Raises `Violation`."""
        id_ = answer.get("id")
        if id_ is None:
            if not self._nameless:
                raise Violation(f"an error without an id, though all could be read: {_shown(answer)}")
            self._nameless -= 1
            return
        if "result" in answer:
            problems = [self._problems(method, answer["result"]) for method, _ in self._methods.get(id_, ())]
            if problems and all(problems):
                raise Violation(f"{problems[0][0][:500]}: {_shown(answer)}")
        for owed in (self.outstanding, self._forgiven):
            if owed[id_] > 0:
                owed[id_] -= 1
                if not owed[id_]:
                    del owed[id_]
                break
            del owed[id_]
        else:
            raise Violation(f"this answers nothing: {_shown(answer)}")
        if not self.outstanding[id_] and not self._forgiven[id_]:
            del self.outstanding[id_], self._forgiven[id_]
            self._methods.pop(id_, None)

    def _problems(self, method: str, result: Any) -> list[str]:
        """Return the problems of a result of a method; empty if it is valid in one of the revisions."""
        known = [one for one in self._oracles if getattr(one.methods.get(method), "kind", "") == "request"]
        return min((one.result(method, result) for one in known), key=len, default=[])

    def _tokens(self) -> Iterator[Any]:
        return (token for known in self._methods.values() for _, token in known)

    def endless(self) -> list[Id]:
        """Return the ids of requests that get their response only when they end."""
        return [id_ for id_, known in self._methods.items() if any(method in ENDLESS for method, _ in known)]

    def take_requests(self) -> list[Any]:
        """Return the requests of the side since the last call."""
        requests, self._requests = self._requests, []
        return requests

    def settled(self) -> None:
        """Record that all required responses came; stop accepting optional responses after `LATE` seconds."""
        self._nameless = 0
        now = time.monotonic()
        for id_ in [id_ for id_, since in self._since.items() if now > since + LATE]:
            del self._since[id_], self._forgiven[id_]
        self._methods = {id_: known for id_, known in self._methods.items() if id_ in self._forgiven}


def _shown(message: Any) -> str:
    return str(message if isinstance(message, bytes) else json.dumps(message))[:500]


# --- processes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Vitals:
    """Resources of a process: memory in bytes, threads, and open files."""

    memory: int
    threads: int
    files: int

    @classmethod
    def of(cls, pid: int) -> Vitals:
        """Return the resources that a process uses now."""
        folder = Path(f"/proc/{pid}")
        pages = int((folder / "statm").read_text("ascii").split()[1])
        threads, files = (len(list((folder / name).iterdir())) for name in ("task", "fd"))
        return cls(pages * os.sysconf("SC_PAGE_SIZE"), threads, files)

    def __str__(self) -> str:
        return f"{self.memory / 2**20:.0f} MiB, {self.threads} threads, {self.files} files"
