"""Decide what becomes of a schema that breaks a rule: refuse it, or read it all the same and say how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import BadInput, printable
from .pointer import join, split, step


@dataclass(frozen=True)
class Decision:
    """How a place of a schema was read that breaks a rule.

    Attributes:
        kind: The kind of decision, e.g. `empty-result`.
        file: The file that it stands in.
        pointer: JSON Pointer (RFC 6901) to the place.
        reason: What is wrong there.
        reading: How it was read.
        fix: What settles it, in the schema or in a file for `--semantics`.
    """

    kind: str
    file: str
    pointer: str
    reason: str
    reading: str
    fix: str

    def __str__(self) -> str:
        return printable(f"{self.file}#{self.pointer}: {self.reason}; {self.reading}; {self.fix}")


class Reading:
    """One reading of a schema: strict, or lenient with a list of decisions.

    Args:
        file: The file that is read, for decisions.
        strict: Whether what breaks a rule is an error. Revisions of ours are always read like this.
    """

    def __init__(self, file: object = None, *, strict: bool = True) -> None:
        self.file, self.strict = file, strict
        self.root = "/$defs"
        self.document: Any = None
        self._decisions: dict[Decision, None] = {}
        self._places: dict[str, str] = {}
        self._owners: dict[str, Reading] = {}

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions so far, each once, in the order in which they were taken."""
        return tuple(self._decisions)

    def fork(self) -> Reading:
        """Return a reading that goes on from here on its own."""
        other = Reading(self.file, strict=self.strict)
        other.root, other.document = self.root, self.document
        other._decisions, other._places, other._owners = dict(self._decisions), dict(self._places), self._owners
        return other

    def joined(self, owners: Mapping[str, Reading]) -> Reading:
        """Return a reading of this schema with definitions of others, each of which decides about its own.

        Args:
            owners: Definition -> the reading of the schema that it stands in.
        """
        other = self.fork()
        other._owners = {**self._owners, **owners}
        for reading in {id(owner): owner for owner in owners.values()}.values():
            other._decisions |= reading._decisions
        return other

    def settle(self, kind: str, error: BadInput, reading: str) -> None:
        """Raise `error` if this is a strict reading; else note the decision, and the caller goes on with it.

        Args:
            kind: The kind of decision.
            error: What is wrong, with the pointer to it and what settles it.
            reading: How the caller reads it, in a few words.
        """
        tokens = split(known := self._known(error.pointer or ""))
        owner = self._owners.get(tokens[1], self) if tokens[:1] == ["$defs"] and len(tokens) > 1 else self
        pointer = owner.place(known)
        if owner.strict:
            raise BadInput(error.message, file=error.file or owner.file, pointer=pointer, fix=error.fix)
        file = "" if owner.file is None else str(owner.file)
        self._decisions[Decision(kind, file, pointer, error.message, reading, error.fix or "")] = None

    def moved(self, name: str, pointer: str) -> None:
        """Note that the definition `name` stands at `pointer` in the file: it was an inline object, or is renamed."""
        self._places[name] = pointer

    def place(self, pointer: str) -> str:
        """Return the place in the file that is nearest to what passes know by `pointer`.

        To them, all definitions stand in `$defs`, inline objects too, and there is no `allOf`.
        """
        pointer = self._known(pointer)
        if split(pointer)[:1] == ["$defs"]:
            pointer = f"{self.root}{pointer.removeprefix('/$defs')}"
        return pointer if self.document is None else _existing(pointer, self.document)

    def _known(self, pointer: str) -> str:
        """Return `pointer` with the place of what was moved in the place of its definition."""
        while (tokens := split(pointer))[:1] == ["$defs"] and len(tokens) > 1 and tokens[1] in self._places:
            pointer = join(self._places[tokens[1]], *tokens[2:])
        return pointer


def _existing(pointer: str, document: Any) -> str:
    """Return the last place on the way to `pointer` that there is; what an `allOf` says together stands nowhere."""
    found = ""
    for token in split(pointer):
        try:
            document = step(document, token)
        except KeyError:
            break
        found = join(found, token)
    return found
