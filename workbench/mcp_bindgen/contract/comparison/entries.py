"""Compare two versions of one tool, prompt, resource or template."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_bindgen.app.catalog import SCOPES, Kind
from mcp_bindgen.lock.verdict import schema_of_arguments

from ..model import Entry
from .schemas import ANSWERED, SENT, SchemaPair, rule_of_words
from .verdicts import ContractFinding, Level

_HANDLED: Mapping[Kind, frozenset[str]] = {
    "tool": frozenset({"name", "inputSchema", "outputSchema", "annotations", SCOPES}),
    "prompt": frozenset({"name", "arguments", SCOPES}),
    "resource": frozenset({"uri", "mimeType", SCOPES}),
    "template": frozenset({"uriTemplate", "mimeType", "variables", SCOPES}),
}
"""Kind -> members that are compared by meaning; for other members, only the fact of a change is reported."""

_EFFECTS = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}
"""Annotation of a tool -> its meaning if absent."""


@dataclass(frozen=True)
class Pair:
    """Comparison of an entry of both contracts."""

    items: tuple[Entry, Entry]

    @property
    def kind(self) -> Kind:
        """Kind of the entry."""
        return self.items[1].kind

    @property
    def name(self) -> str:
        """Name or URI of the entry in the new contract."""
        return self.items[1].key

    def findings(self) -> Iterator[ContractFinding]:
        """Find the changes of the entry."""
        match self.kind:
            case "tool":
                yield from self.compared(SENT, *(item.raw["inputSchema"] for item in self.items))
                yield from self.answered()
                yield from self.annotations()
            case "prompt":
                sides = (schema_of_arguments(item.raw.get("arguments") or []) for item in self.items)
                yield from self.compared(SENT, *sides)
            case "resource":
                yield from self.mime_type()
            case "template":
                yield from self.variables()
                yield from self.mime_type()
        yield from self.scopes()
        yield from self.others()

    # --- schemas ------------------------------------------------------------------------------------------------

    def answered(self) -> Iterator[ContractFinding]:
        """Find the changes of the structured content of a tool."""
        old, new = (item.raw.get("outputSchema") for item in self.items)
        if old is not None and new is not None:
            yield from self.compared(ANSWERED, old, new)
        elif old is not None:
            hint = "Read the content instead; it is not typed."
            yield self.finding(
                "output-schema-removed", "result", "is no longer structured", (Level.BREAKING, Level.SAFE), hint
            )
        elif new is not None:
            yield self.finding("output-schema-added", "result", "is structured now", (Level.SAFE, Level.BREAKING))

    def variables(self) -> Iterator[ContractFinding]:
        """Find the changed descriptions of the variables of a template; its URI determines the variables."""
        sides: list[Any] = [item.raw.get("variables") or [] for item in self.items]
        names = dict.fromkeys(one["name"] for side in sides for one in side)
        known = [{one["name"]: one for one in side} for side in sides]
        listed = ([side.get(name, {"name": name}) for name in names] for side in known)
        yield from self.compared(SENT, *map(schema_of_arguments, listed))

    def compared(self, root: str, old: Any, new: Any) -> list[ContractFinding]:
        """Return the changes from one schema to another."""
        return SchemaPair(self.kind, self.name, root, (old, new)).findings()

    # --- everything else ----------------------------------------------------------------------------------------

    def annotations(self) -> Iterator[ContractFinding]:
        """Find the changed annotations of a tool; hosts use them to decide about confirmations."""
        sides: list[dict[str, Any]] = [item.raw.get("annotations") or {} for item in self.items]
        old, new = sides
        for name in sorted(old.keys() | new.keys()):
            absent = _EFFECTS.get(name)
            was, now = old.get(name, absent), new.get(name, absent)
            if was != now:
                level = Level.RISKY if name in _EFFECTS else Level.SAFE
                message = f"was {_said(was)}, is {_said(now)}"
                yield self.finding("annotation-changed", f"annotation {name}", message, (level, level))

    def mime_type(self) -> Iterator[ContractFinding]:
        """Yield a finding if the media type of a resource changed."""
        old, new = (item.raw.get("mimeType") for item in self.items)
        if old != new:
            message = f"was {old or 'not said'}, is {new or 'not said'}"
            yield self.finding("mime-type-changed", "mimeType", message, (Level.RISKY, Level.RISKY))

    def scopes(self) -> Iterator[ContractFinding]:
        """Find the changes of the required scopes."""
        old, new = (item.raw.get(SCOPES, []) for item in self.items)
        for scope in (scope for scope in new if scope not in old):
            hint = "Tokens need it now: clients that step up ask their user for it, others fail."
            yield self.finding("scope-added", "", f"needs the scope {scope}", (Level.RISKY, Level.SAFE), hint)
        for scope in (scope for scope in old if scope not in new):
            yield self.finding(
                "scope-removed", "", f"does not need the scope {scope} any more", (Level.SAFE, Level.RISKY)
            )

    def others(self) -> Iterator[ContractFinding]:
        """Find changed members without influence on messages."""
        old, new = (item.raw for item in self.items)
        for member in sorted((old.keys() | new.keys()) - _HANDLED[self.kind]):
            if old.get(member) != new.get(member):
                yield self.finding(rule_of_words(member), "", f"has another {member}", (Level.SAFE, Level.SAFE))

    # --- helpers ------------------------------------------------------------------------------------------------

    def finding(
        self, rule: str, place: str, message: str, levels: tuple[Level, Level], hint: str = ""
    ) -> ContractFinding:
        """Return a finding about this entry."""
        return ContractFinding(rule, self.kind, self.name, place, message, *levels, hint)


def _said(value: Any) -> str:
    return "not said" if value is None else json.dumps(value, ensure_ascii=False)
