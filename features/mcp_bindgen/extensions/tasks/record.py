"""Keep the state of a task: what it was asked to do, how far it is, and the rules by which that changes.

A record is a value in the terms of JSON and belongs to no revision of the protocol. A rule returns the record that
follows, which a store takes only if nobody was quicker.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias

from pydantic_core import from_json, to_json

from mcp_bindgen.runtime.protocol.errors import INTERNAL_ERROR

Status: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]
"""How far a task is; the last three are its end."""

_OPEN = ("working", "input_required")


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskRecord:
    """A task. Times are milliseconds since 1970, durations milliseconds.

    Attributes:
        id: Its name: 256 random bits, as text that may stand in a URL.
        principal: Whose it is; empty where nobody is told apart.
        revision: The revision of the params and the result.
        method: The method of the request.
        params: Its params, in wire form, with what its `_meta` says of the client.
        client: What its client introduced itself as and declared: `info` and `capabilities`, in wire form.
        identity: Who asked for it, as `Identity` has it, without any token; `None` where tokens do not say.
        status: How far it is.
        message: Explains the status to people.
        created: When it was created.
        updated: When it last changed.
        ttl: How long it is kept, from its creation; `None` for ever.
        poll: How long to wait between two looks at it.
        result: What the request is answered with, in wire form, once it is completed.
        error: The JSON-RPC error, once it has failed.
        asked: Key -> question, for all questions that it has ever put, in wire form.
        open: The keys of those that it waits for now.
        answers: Key -> answer, in wire form.
        runs: How often it has begun to run.
        reruns: How often it may run again after the process that ran it died.
        version: Grows with each change.
    """

    id: str
    principal: str = ""
    revision: str
    method: str
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    client: dict[str, Any] = field(default_factory=dict[str, Any])
    identity: dict[str, Any] | None = None
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

    @property
    def is_over(self) -> bool:
        """Whether it has ended, so that nothing of it changes any more."""
        return self.status not in _OPEN

    @property
    def expires(self) -> int | None:
        """When its time is over; `None` for never."""
        return None if self.ttl is None else self.created + self.ttl

    @property
    def questions(self) -> dict[str, Any]:
        """Key -> question, for those that it waits for now."""
        return {key: self.asked[key] for key in self.open}

    def dump(self) -> bytes:
        """Return it as JSON text, without what is as in any new task."""
        return to_json({name: value for name, value in asdict(self).items() if value != _DEFAULTS.get(name, _NEVER)})

    @classmethod
    def load(cls, data: bytes) -> TaskRecord:
        """Read what `dump` wrote; members that only a newer program knows are left out."""
        wire: dict[str, Any] = from_json(data)
        known = {name: value for name, value in wire.items() if name in cls.__dataclass_fields__}
        known["open"] = tuple(known.get("open", ()))
        return cls(**known)

    # --- rules ------------------------------------------------------------------------------------------------

    def _next(self, now: int, **changes: Any) -> TaskRecord:
        return replace(self, version=self.version + 1, updated=max(now, self.updated), **changes)

    def begun(self, now: int) -> TaskRecord:
        """Begin to run, or to run again: it fails if it has already run as often as it may."""
        if self.runs > self.reruns:
            return self.failed(now, INTERNAL_ERROR, "the task was interrupted, and may not run again")
        return self._next(now, status="working", runs=self.runs + 1, open=())

    def given_back(self, now: int) -> TaskRecord:
        """Take back a run that a server ended in good order, so that another one may begin it."""
        if not self.reruns:
            return self.failed(now, INTERNAL_ERROR, "the server was stopped, and the task may not run again")
        return self._next(now, runs=self.runs - 1)

    def asking(self, now: int, questions: Mapping[str, Any]) -> tuple[TaskRecord, dict[str, str]]:
        """Put questions, each under a key that never stands for another one.

        A question that was put before, when the task ran the last time, is the same one and may be answered already.

        Args:
            now: The time.
            questions: Key -> question.

        Returns:
            What follows, and key -> the key that clients see.
        """
        asked, keys = dict(self.asked), dict[str, str]()
        for key, question in questions.items():
            wire, count = key, 1
            while asked.get(wire, question) != question or wire in keys.values():
                count += 1
                wire = f"{key}#{count}"
            keys[key], asked[wire] = wire, question
        new = [wire for wire in keys.values() if wire not in self.answers]
        if not new:
            return self, keys
        waits = (*(one for one in self.open if one not in new), *new)
        return self._next(now, status="input_required", asked=asked, open=waits), keys

    def answered(self, now: int, answers: Mapping[str, Any]) -> TaskRecord:
        """Take answers to questions that have none; all others are left aside."""
        new = {key: value for key, value in answers.items() if key in self.asked and key not in self.answers}
        if not new:
            return self
        waits = tuple(key for key in self.open if key not in new)
        status: Status = "input_required" if waits else "working"
        return self._next(now, status=status, open=waits, answers={**self.answers, **new})

    def told(self, now: int, message: str) -> TaskRecord:
        """Say what is going on."""
        return self if message == self.message else self._next(now, message=message)

    def completed(self, now: int, result: Mapping[str, Any]) -> TaskRecord:
        """End with a result."""
        return self._ended(now, "completed", result=dict(result), message=None)

    def failed(self, now: int, code: int, message: str, data: Any = None) -> TaskRecord:
        """End with an error of JSON-RPC."""
        error = {"code": code, "message": message, **({} if data is None else {"data": data})}
        return self._ended(now, "failed", error=error, message=message)

    def cancelled(self, now: int) -> TaskRecord:
        """End without an outcome."""
        return self._ended(now, "cancelled")

    def _ended(self, now: int, status: Status, **outcome: Any) -> TaskRecord:
        return self._next(now, status=status, open=(), **outcome)


def new_id() -> str:
    """Make the id of a task: 256 random bits (MCP, "Tasks": Task ID unguessability)."""
    return secrets.token_urlsafe(32)


_NEVER = object()
_DEFAULTS: dict[str, Any] = {
    "principal": "",
    "client": {},
    "identity": None,
    "message": None,
    "result": None,
    "error": None,
    "asked": {},
    "open": (),
    "answers": {},
    "runs": 0,
    "reruns": 0,
}
