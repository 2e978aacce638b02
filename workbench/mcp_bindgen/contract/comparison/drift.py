"""Check a live server against its lock: verdicts with evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import jsonschema_rs
from mcp_bindgen.app.inclusion import Answer, sent
from mcp_bindgen.lock.verdict import (
    Drift,
    LockStatus,
    Part,
    TextChange,
    Verdict,
    drift,
    judge_server,
    server_texts,
)

from mcp_bindgen.app.catalog import KINDS, Entry, Kind
from mcp_bindgen.lock.document import LockedServer, Snapshot
from mcp_bindgen.spec.json import is_array, is_object

from .inclusion import Inclusion, included, too_complex


class Mode(StrEnum):
    """Direction in which two contracts must be compatible."""

    BACKWARD = "backward"
    """Clients of the locked contract work with the live server."""
    FORWARD = "forward"
    """Clients of the live contract work with a server of the locked contract."""
    FULL = "full"
    """Both."""


@dataclass(frozen=True)
class Witness:
    """Value that proves a break.

    Attributes:
        part: `arguments` or `result`.
        value: A value of the sender that the receiver refuses.
        problem: Error message of the receiver.
    """

    part: Part
    value: Any
    problem: str


@dataclass(frozen=True)
class Checked:
    """Verdict on a server or an entry, with evidence.

    Attributes:
        verdict: The verdict.
        texts: The changed texts.
        witnesses: Values that prove breaks.
        age: Number of contracts between the compared contract and the locked one; 0 for the locked one.
    """

    verdict: Verdict
    texts: Sequence[TextChange] = ()
    witnesses: Sequence[Witness] = ()
    age: int = 0


def check_server(
    locked: LockedServer, live: Snapshot, mode: Mode = Mode.BACKWARD, *, transitive: bool = False
) -> list[Checked]:
    """Return the verdicts on a live server and its entries, the worst first; of several on one entry, the worst.

    Args:
        locked: The server in the lock.
        live: The contract of the live server.
        mode: Direction of the comparison.
        transitive: True to compare with the earlier contracts of the lock, too.
    """
    whole = Checked(judge_server(locked.current, live), server_texts(locked.current, live))
    worst = {(one.verdict.kind, one.verdict.name): one for one in _entries(locked.current, live, mode)}
    for age, snapshot in enumerate(locked.history if transitive else (), 1):
        for one in _entries(snapshot, live, mode):
            key = one.verdict.kind, one.verdict.name
            is_worse = key not in worst or one.verdict.status > worst[key].verdict.status
            if is_worse and one.verdict.status >= LockStatus.UNPROVEN:  # other texts were reviewed since
                worst[key] = replace(one, texts=(), age=age)
    return sorted([whole, *worst.values()], key=lambda one: -one.verdict.status)


def _entries(old: Snapshot, new: Snapshot, mode: Mode) -> Iterator[Checked]:
    for kind in KINDS:
        ours, theirs = old.entries[kind], new.entries[kind]
        for name, entry in ours.items():
            if name in theirs:
                yield _entry(kind, name, entry, theirs[name], mode)
            elif mode is not Mode.FORWARD:
                yield Checked(Verdict(kind, name, LockStatus.BREAKING, ("it is gone",)))
        for name in theirs.keys() - ours.keys():
            status = LockStatus.ADDED if mode is Mode.BACKWARD else LockStatus.BREAKING
            yield Checked(Verdict(kind, name, status, ("the lock does not have it",)))


def _entry(kind: Kind, name: str, old: Entry, new: Entry, mode: Mode) -> Checked:
    backward = drift(kind, name, old, new)
    forward = replace(drift(kind, name, new, old), texts=backward.texts)
    sides = {Mode.BACKWARD: [backward], Mode.FORWARD: [forward], Mode.FULL: [backward, forward]}[mode]
    return max(map(_checked, sides), key=lambda one: one.verdict.status)


def _checked(found: Drift) -> Checked:
    """Return the verdict on an entry; a break needs a value that proves it."""
    answers: list[Answer] = []
    witnesses: list[Witness] = []
    for question in found.questions:
        if too_complex(question.sender, question.receiver):
            answers.append(Answer.UNKNOWN)
            continue
        proof = included(question.sender, question.receiver, formats=True)
        is_unshown = proof.answer is Answer.NO and not proof.example
        answers.append(Answer.UNKNOWN if is_unshown else proof.answer)
        if proof.example:
            witnesses.append(_witness(question.part, question.sender, question.receiver, proof))
    return Checked(found.verdict(answers), found.texts, witnesses)


def _witness(part: Part, sender: Any, receiver: Any, proof: Inclusion) -> Witness:
    accepts, refuses = (jsonschema_rs.validator_for(one, offline=True) for one in (sent(sender), receiver))

    def proves(value: Any) -> bool:
        return accepts.is_valid(value) and not refuses.is_valid(value)

    value = smaller = proof.example[0]
    while smaller is not None:
        value, smaller = smaller, next(filter(proves, _smaller(smaller)), None)
    return Witness(part, value, next(refuses.iter_errors(value)).message)


def _smaller(value: Any) -> Iterator[Any]:
    """Yield values that have one member or item less, at any depth."""
    if is_object(value):
        for name in value:
            yield {key: one for key, one in value.items() if key != name}
            yield from ({**value, name: one} for one in _smaller(value[name]))
    elif is_array(value):
        for index, item in enumerate(value):
            yield [*value[:index], *value[index + 1 :]]
            yield from ([*value[:index], one, *value[index + 1 :]] for one in _smaller(item))
