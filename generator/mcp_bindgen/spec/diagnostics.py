"""Diagnostics of schemas that break rules: errors in strict mode, warnings in lenient mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mcp_bindgen.json_schema.pointer import existing

from .errors import BadInput, printable
from .json import join, split
from .toml import read_toml


@dataclass(frozen=True)
class Diagnostic:
    """Broken rule of a schema that was read leniently.

    Attributes:
        kind: Kind of broken rule, e.g. `empty-result`.
        file: The file.
        pointer: JSON Pointer (RFC 6901) to the place.
        reason: The broken rule.
        interpretation: How the place was read.
        fix: Fix in the schema or in a file for `--semantics`.
    """

    kind: str
    file: str
    pointer: str
    reason: str
    interpretation: str
    fix: str

    def __str__(self) -> str:
        return printable(f"{self.file}#{self.pointer}: {self.reason}; {self.interpretation}; {self.fix}")


class DiagnosticContext:
    """Collects the diagnostics of a schema in lenient mode, or raises the first one in strict mode.

    Args:
        file: The file, for diagnostics.
        strict: True if a broken rule is an error, as in our revisions.
    """

    def __init__(self, file: object = None, *, strict: bool = True) -> None:
        self.file, self.strict = file, strict
        self.root = "/$defs"
        self.document: Any = None
        self._diagnostics: dict[Diagnostic, None] = {}
        self._places: dict[str, str] = {}
        self._owners: dict[str, DiagnosticContext] = {}

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The diagnostics so far, in order, without duplicates."""
        return tuple(self._diagnostics)

    def fork(self) -> DiagnosticContext:
        """Return an independent copy of this context."""
        other = DiagnosticContext(self.file, strict=self.strict)
        other.root, other.document = self.root, self.document
        other._diagnostics, other._places, other._owners = dict(self._diagnostics), dict(self._places), self._owners
        return other

    def joined(self, owners: Mapping[str, DiagnosticContext]) -> DiagnosticContext:
        """Return a context for this schema together with definitions of other schemas.

        Args:
            owners: Definition -> context of its schema, which reports about it.
        """
        other = self.fork()
        other._owners = {**self._owners, **owners}
        for context in {id(owner): owner for owner in owners.values()}.values():
            other._diagnostics |= context._diagnostics
        return other

    def report(self, rule: str, pointer: str, /, **words: object) -> None:
        """Raise an error in strict mode; else record a diagnostic, so that the caller can continue.

        Args:
            rule: Name of the broken rule in `diagnostics.toml`.
            pointer: Pointer of the passes to the place.
            words: Values for the texts of the rule.
        """
        texts = rules()[rule]
        reason, interpretation, fix = (texts[name].format(**words) for name in ("reason", "read", "fix"))
        tokens = split(known := self._known(pointer))
        owner = self._owners.get(tokens[1], self) if tokens[:1] == ["$defs"] and len(tokens) > 1 else self
        place = owner.place(known)
        if owner.strict:
            raise BadInput(reason, file=owner.file, pointer=place, fix=fix)
        file = "" if owner.file is None else str(owner.file)
        self._diagnostics[Diagnostic(texts.get("kind", rule), file, place, reason, interpretation, fix)] = None

    def moved(self, name: str, pointer: str) -> None:
        """Record the `pointer` in the file of a definition that was an inline object or is renamed."""
        self._places[name] = pointer

    def place(self, pointer: str) -> str:
        """Return the nearest place in the file for a `pointer` of the passes.

        For the passes, all definitions and inline objects are in `$defs`, and there is no `allOf`.
        """
        pointer = self._known(pointer)
        if split(pointer)[:1] == ["$defs"]:
            pointer = f"{self.root}{pointer.removeprefix('/$defs')}"
        return pointer if self.document is None else existing(self.document, pointer)

    def _known(self, pointer: str) -> str:
        """Return `pointer` with the original place of a moved definition."""
        while (tokens := split(pointer))[:1] == ["$defs"] and len(tokens) > 1 and tokens[1] in self._places:
            pointer = join(self._places[tokens[1]], *tokens[2:])
        return pointer


@cache
def rules() -> Mapping[str, Mapping[str, str]]:
    """Return the rules of `diagnostics.toml` by name."""
    return read_toml(Path(__file__).with_suffix(".toml"))
