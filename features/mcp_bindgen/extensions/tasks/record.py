"""Record of a task: its stored members, its state machine, and its form on the wire.

A record is a JSON value and belongs to no revision of the protocol. A transition returns the next version of the
record; a store accepts it only if the stored version is the previous one (compare and set).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, cached_property, lru_cache
from typing import Any, Literal, TypeAlias

from pydantic import TypeAdapter

from mcp_bindgen.runtime.protocol.access import UNKNOWN_ORIGIN, RequestOrigin
from mcp_bindgen.runtime.protocol.errors import INTERNAL_ERROR
from mcp_bindgen.runtime.protocol.jsonrpc import write_result

Status: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]
"""Status of a task (extension "Tasks": TaskStatus). The last three are final."""

FINAL: frozenset[Status] = frozenset({"completed", "failed", "cancelled"})
"""Statuses without transitions."""

Trigger: TypeAlias = Literal["begin", "give_back", "ask", "answer", "resume", "report", "complete", "fail", "cancel"]
"""Event that changes a task."""

TRANSITIONS: Mapping[Trigger, Mapping[Status, Status]] = {
    "begin": {"working": "working", "input_required": "working"},  # the handler asks its questions again
    "give_back": {"working": "working", "input_required": "input_required"},
    "ask": {"working": "input_required", "input_required": "input_required"},
    "answer": {"input_required": "input_required"},
    "resume": {"input_required": "working", "working": "working"},  # while working: a question of an earlier run
    "report": {"working": "working", "input_required": "input_required"},
    "complete": {"working": "completed", "input_required": "completed"},
    "fail": {"working": "failed", "input_required": "failed"},
    "cancel": {"working": "cancelled", "input_required": "cancelled"},
}
"""Trigger -> status -> next status. A transition that is not in the table is an error of the caller."""

LINGER_MS = 60_000
"""Milliseconds for which a task is kept after its end, so that its client learns the outcome."""


@dataclass(frozen=True, slots=True)
class TaskClient:
    """The client of a task, as it introduced itself in the request.

    Attributes:
        info: Its `Implementation`, in wire form.
        capabilities: Its capabilities, in wire form.
    """

    info: dict[str, Any] | None = None
    capabilities: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, kw_only=True)
class TaskRecord:
    """A task. Times are milliseconds since 1970.

    Attributes:
        id: Task id: 256 random bits as URL-safe text.
        revision: Revision of the params and the result.
        method: Method of the request.
        params: Params of the request, in wire form.
        origin: Origin of the request, without HTTP headers. It never holds a token.
        client: Client that sent the request.
        session: Hash of the id of its HTTP session; `None` without one.
        status: Current status.
        message: Status message for people.
        created: Time of creation.
        updated: Time of the last change.
        ttl: Milliseconds from creation to expiry; `None` for no expiry.
        poll: Milliseconds that clients should wait between two polls.
        result: Result of the request in wire form; set if the task is completed.
        error: JSON-RPC error; set if the task has failed.
        asked: Key -> question in wire form, for all questions of the task.
        open: Keys of the questions that wait for an answer.
        answers: Key -> answer in wire form.
        runs: Number of runs that have begun.
        reruns: Number of additional runs allowed after a worker died.
        version: Number of the version; each change increments it.
    """

    id: str
    revision: str
    method: str
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    origin: RequestOrigin = UNKNOWN_ORIGIN
    client: TaskClient = field(default_factory=TaskClient)
    session: str | None = None
    status: Status = "working"
    message: str | None = None
    created: int
    updated: int
    ttl: int | None = None
    poll: int = 1000
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    asked: dict[str, Any] = field(default_factory=dict[str, Any])
    open: tuple[str, ...] = ()
    answers: dict[str, Any] = field(default_factory=dict[str, Any])
    runs: int = 0
    reruns: int = 0
    version: int = 1

    @cached_property
    def principal(self) -> str:
        """Principal that owns the task; empty if the server does not distinguish clients."""
        return self.origin.principal or ""

    @cached_property
    def is_over(self) -> bool:
        """True if the status is final."""
        return self.status in FINAL

    @property
    def expires(self) -> int | None:
        """Time of expiry; `None` for never."""
        return None if self.ttl is None else self.created + self.ttl

    @property
    def questions(self) -> dict[str, Any]:
        """Key -> question in wire form, for questions that wait for an answer."""
        return {key: self.asked[key] for key in self.open}

    @property
    def removable_at(self) -> float:
        """Time from which the record may be removed; infinite for a task that is not over or never expires."""
        end = self.expires if self.is_over else None
        return float("inf") if end is None else float(max(end, self.updated + LINGER_MS))

    @cached_property
    def data(self) -> bytes:
        """The record as JSON text, without default values; raises `ValueError` if a value has no JSON form."""
        return write_result(self, _adapter().serializer, exclude_defaults=True)

    @classmethod
    def load(cls, data: bytes) -> TaskRecord:
        """Read JSON text of `data`; ignore unknown members. Raises `ValueError` if the text is not a record."""
        return _adapter().validate_json(data)

    # --- transitions ------------------------------------------------------------------------------------------

    def _next(self, trigger: Trigger, now: int, **changes: Any) -> TaskRecord:
        status = TRANSITIONS[trigger].get(self.status)
        if status is None:
            raise ValueError(f"a task in the status {self.status} cannot {trigger}")
        return replace(self, status=status, version=self.version + 1, updated=max(now, self.updated), **changes)

    def begun(self, now: int) -> TaskRecord:
        """Begin a run, or fail the task if it has expired or has no runs left."""
        if self.is_expired(now):
            return self.expired(now)
        if self.runs > self.reruns:
            return self.failed(now, INTERNAL_ERROR, "the task was interrupted and may not run again")
        return self._next("begin", now, runs=self.runs + 1, open=())

    def given_back(self, now: int) -> TaskRecord:
        """Undo the begin of a run, so that another worker can begin it; fail the task if it may not run again."""
        if not self.reruns:
            return self.failed(now, INTERNAL_ERROR, "the server was stopped and the task may not run again")
        return self._next("give_back", now, runs=self.runs - 1)

    def keys_of(self, questions: Mapping[str, Any]) -> dict[str, str]:
        """Return handler key -> key on the wire for questions; a key on the wire never changes its question.

        A question that an earlier run of the task has asked has the same key, and may have an answer.
        """
        keys = dict[str, str]()
        for key, question in questions.items():
            wire, count = key, 1
            while self.asked.get(wire, question) != question or wire in keys.values():
                count += 1
                wire = f"{key}#{count}"
            keys[key] = wire
        return keys

    def asking(self, now: int, questions: Mapping[str, Any]) -> TaskRecord:
        """Add questions, given by handler key, and wait for the answers that are missing."""
        asked = {wire: questions[key] for key, wire in self.keys_of(questions).items()}
        new = [wire for wire in asked if wire not in self.answers]
        waits = (*(key for key in self.open if key not in new), *new)
        return self._next("ask", now, asked={**self.asked, **asked}, open=waits) if new else self

    def answered(self, now: int, answers: Mapping[str, Any]) -> TaskRecord:
        """Add answers to unanswered questions; ignore all other answers."""
        new = {key: value for key, value in answers.items() if key in self.asked and key not in self.answers}
        waits = tuple(key for key in self.open if key not in new)
        trigger: Trigger = "answer" if waits else "resume"
        return self._next(trigger, now, open=waits, answers={**self.answers, **new}) if new else self

    def reported(self, now: int, message: str) -> TaskRecord:
        """Set the status message."""
        return self if message == self.message else self._next("report", now, message=message)

    def completed(self, now: int, result: Mapping[str, Any]) -> TaskRecord:
        """End the task with a result."""
        return self._next("complete", now, open=(), result=dict(result), message=None)

    def failed(self, now: int, code: int, message: str, data: object = None) -> TaskRecord:
        """End the task with a JSON-RPC error."""
        error = {"code": code, "message": message, **({} if data is None else {"data": data})}
        return self._next("fail", now, open=(), error=error, message=message)

    def cancelled(self, now: int) -> TaskRecord:
        """End the task without an outcome."""
        return self._next("cancel", now, open=())

    def is_expired(self, now: int) -> bool:
        """True if the time to live is over."""
        return self.ttl is not None and self.created + self.ttl <= now

    def expired(self, now: int) -> TaskRecord:
        """Fail the task if its time to live is over."""
        message = "the task was not done before its time to live was over"
        return self.failed(now, INTERNAL_ERROR, message) if self.is_expired(now) else self

    # --- wire form (extension "Tasks": Task, DetailedTask, CreateTaskResult) ----------------------------------

    def wire(self, **more: object) -> dict[str, Any]:
        """Return the task in wire form, with additional members."""
        message = {} if self.message is None else {"statusMessage": self.message}
        times = {"createdAt": _iso(self.created), "lastUpdatedAt": _iso(self.updated)}
        polling = {"ttlMs": self.ttl, "pollIntervalMs": self.poll}
        return {"taskId": self.id, "status": self.status, **message, **times, **polling, **more}

    def detailed(self) -> dict[str, Any]:
        """Return the task in wire form with the member of its status: questions, result or error."""
        if self.result is not None:
            return self.wire(result=self.result)
        if self.error is not None:
            return self.wire(error=self.error)
        return self.wire(inputRequests=self.questions) if self.open else self.wire()


@cache
def _adapter() -> TypeAdapter[TaskRecord]:
    return TypeAdapter(TaskRecord)


def new_id() -> str:
    """Return a new task id: 256 random bits (MCP, "Tasks": Task ID unguessability)."""
    return secrets.token_urlsafe(32)


def now() -> int:
    """Return the current time in milliseconds since 1970."""
    return round(time.time() * 1000)


@lru_cache(maxsize=256)
def _iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
