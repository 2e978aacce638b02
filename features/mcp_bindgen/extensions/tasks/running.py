"""Give the handler of a task a way to its client: questions, and words about its progress."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

import anyio

from mcp_bindgen.runtime.protocol.errors import StoreUnavailable
from mcp_bindgen.runtime.session.rounds import InputRequired

from .record import TaskRecord

_TELLS = 1.0  # seconds between two changes of what a task says of its progress

Rule: TypeAlias = Callable[[TaskRecord, int], TaskRecord]
"""Returns the record that follows, given the time; the same one where nothing changes."""


class Changes(Protocol):
    """The part of `Tasks` by which a task changes while it runs."""

    @property
    def patience(self) -> float | None:
        """Seconds for which a handler waits for an answer before it is ended; `None` for ever."""
        ...

    async def change(self, id: str, rule: Rule, runs: int | None = None) -> TaskRecord | None:
        """Change a task that is not over."""
        ...

    async def insist(self, id: str, rule: Rule, runs: int | None = None) -> TaskRecord | None:
        """Change a task, and wait for the store while it is away."""
        ...

    def versions(self, id: str) -> AsyncGenerator[TaskRecord]:
        """Yield a task, and again each time that it has changed, until it is over or gone."""
        ...


class RunningTask:
    """A task while its handler runs.

    Args:
        service: What serves it.
        id: Its id.

    Attributes:
        id: The same.
        scope: Cancels the handler.
    """

    def __init__(self, service: Changes, id: str) -> None:
        self.id = id
        self.scope = anyio.CancelScope()
        self.runs = 0
        self.expires: int | None = None
        self._service = service
        self._told = 0.0

    async def ask(self, questions: Mapping[str, Any]) -> dict[str, Any]:
        """Put questions at the same time, and wait for all answers.

        Args:
            questions: Key -> request, in wire form. The key names it among those of this task; the same question has
                the same key when the handler runs again.

        Returns:
            Key -> answer, in wire form.

        Raises:
            InputRequired: They do not come soon, and the runner wants the handler to run again then.
        """
        wire: dict[str, str] = {}

        def asking(record: TaskRecord, now: int) -> TaskRecord:
            nonlocal wire
            following, wire = record.asking(now, questions)
            return following

        await anyio.lowlevel.checkpoint()  # what cancels the handler comes first
        record = await self._service.insist(self.id, asking, self.runs)
        patience = self._service.patience if record is not None and record.reruns else None
        with anyio.move_on_after(patience):
            async for record in self._service.versions(self.id):
                if record.is_over or record.runs != self.runs or wire.keys() != questions.keys():
                    continue  # it is over, or another worker has taken it over: this handler is about to be cancelled
                if record.answers.keys() >= set(wire.values()):
                    return {key: record.answers[name] for key, name in wire.items()}
        if patience is None:
            await anyio.sleep_forever()  # it is over: this handler is about to be cancelled
        raise InputRequired

    async def tell(self, message: str) -> None:
        """Say what is going on; what follows too soon upon another word is left out."""
        if time.monotonic() >= self._told:
            self._told = time.monotonic() + _TELLS
            with suppress(StoreUnavailable):
                await self._service.change(self.id, lambda record, now: record.told(now, message), self.runs)


Handle: TypeAlias = Callable[[TaskRecord, RunningTask], Awaitable[Mapping[str, Any]]]
"""Runs the handler of a task; returns the result in wire form, or raises `ProtocolError`."""
