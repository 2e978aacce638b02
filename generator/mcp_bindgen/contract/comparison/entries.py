"""Compare two versions of one tool, prompt, resource or template."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_bindgen.app.catalog import SCOPES

from ..model import Contract
from .schemas import Entry, schema_findings
from .typed import ANSWERED, SENT
from .verdicts import ContractFinding, Kind, Level

_HANDLED: Mapping[Kind, frozenset[str]] = {
    "tool": frozenset({"name", "inputSchema", "outputSchema", "annotations", SCOPES}),
    "prompt": frozenset({"name", "arguments", SCOPES}),
    "resource": frozenset({"uri", "mimeType", SCOPES}),
    "template": frozenset({"uriTemplate", "mimeType", "variables", SCOPES}),
}
"""Kind -> the members that are compared by what they mean; of others only that they changed is said."""

_EFFECTS = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}
"""What a tool may say of its effects -> what it means where it is absent."""


@dataclass(frozen=True)
class Pair:
    """An entry of both contracts."""

    kind: Kind
    name: str
    contracts: tuple[Contract, Contract]
    items: tuple[Any, Any]

    def findings(self) -> Iterator[ContractFinding]:
        """Find what changed in the entry."""
        match self.kind:
            case "tool":
                yield from self.taken()
                yield from self.answered()
                yield from self.annotations()
            case "prompt":
                yield from self.arguments()
            case "resource":
                yield from self.mime_type()
            case "template":
                yield from self.variables()
                yield from self.mime_type()
            case "server":
                return
        yield from self.scopes()
        yield from self.others()

    # --- types --------------------------------------------------------------------------------------------------

    def taken(self) -> Iterator[ContractFinding]:
        """Find what changed in the arguments of a tool."""
        names, schemas = [item.input for item in self.items], [item.raw["inputSchema"] for item in self.items]
        yield from schema_findings(self.entry, SENT, names, schemas)

    def answered(self) -> Iterator[ContractFinding]:
        """Find what changed in the structured content of a tool."""
        old, new = (item.raw.get("outputSchema") for item in self.items)
        if old is not None and new is not None:
            yield from schema_findings(self.entry, ANSWERED, [item.output for item in self.items], [old, new])
        elif old is not None:
            hint = "Read the content instead; it is not typed."
            yield self.finding(
                "output-schema-removed", "result", "is no longer structured", (Level.BREAKING, Level.SAFE), hint
            )
        elif new is not None:
            yield self.finding("output-schema-added", "result", "is structured now", (Level.SAFE, Level.BREAKING))

    def arguments(self) -> Iterator[ContractFinding]:
        """Find what changed in the arguments of a prompt: all are texts."""
        yield from self.named("argument", *self.listed("arguments"))

    def variables(self) -> Iterator[ContractFinding]:
        """Find what changed in the descriptions of a template's variables; which there are, its URI says."""
        old, new = self.listed("variables")
        nothing: Mapping[str, Any] = {}
        names = list(dict.fromkeys([*old, *new]))
        sides = [{name: side.get(name, nothing) for name in names} for side in (old, new)]
        yield from self.named("variable", *sides)

    def listed(self, member: str) -> list[dict[str, Any]]:
        """Return the arguments or variables of both sides by name."""
        found: list[Any] = [item.raw.get(member) or [] for item in self.items]
        return [{one["name"]: one for one in side} for side in found]

    def named(self, noun: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[ContractFinding]:
        """Compare arguments that are texts, by name."""
        for name in [*old, *(name for name in new if name not in old)]:
            place, was, now = f"{noun} {name}", old.get(name), new.get(name)
            if was is None or now is None:
                known = now if was is None else was
                yield self.one_sided(place, gone=now is None, required=bool(known and known.get("required")))
                continue
            if bool(was.get("required")) != bool(now.get("required")):
                required = bool(now.get("required"))
                rule = "field-became-required" if required else "field-became-optional"
                levels = (Level.BREAKING, Level.SAFE) if required else (Level.SAFE, Level.BREAKING)
                yield self.finding(rule, place, f"is {'required' if required else 'optional'} now", levels)
            yield from self.values(place, was.get("enum"), now.get("enum"))
            for member in sorted((was.keys() | now.keys()) - {"name", "required", "enum"}):
                if was.get(member) != now.get(member):
                    yield self.finding(_rule(member), place, f"has another {member}", (Level.SAFE, Level.SAFE))

    def one_sided(self, place: str, *, gone: bool, required: bool) -> ContractFinding:
        """Return an argument that only one side has; who does not know it ignores it."""
        word = "required" if required else "optional"
        worse = Level.BREAKING if required else Level.SAFE
        if gone:
            return self.finding(f"field-removed-{word}", place, f"is gone; it was {word}", (Level.RISKY, worse))
        return self.finding(f"field-added-{word}", place, f"is new and {word}", (worse, Level.RISKY))

    def values(self, place: str, old: Sequence[str] | None, new: Sequence[str] | None) -> Iterator[ContractFinding]:
        """Find what changed in the values that an argument may have."""
        if old is None and new is None:
            return
        if old is None or new is None:
            rule, words = (
                ("type-narrowed", "is one of a few now") if old is None else ("type-widened", "may be any text")
            )
            levels = (Level.BREAKING, Level.SAFE) if old is None else (Level.SAFE, Level.BREAKING)
            yield self.finding(rule, place, words, levels)
            return
        for value in (value for value in old if value not in new):
            words = f"may not be {json.dumps(value, ensure_ascii=False)} any more"
            yield self.finding("enum-value-removed", place, words, (Level.BREAKING, Level.SAFE))
        for value in (value for value in new if value not in old):
            words = f"may be {json.dumps(value, ensure_ascii=False)}"
            yield self.finding("enum-value-added", place, words, (Level.SAFE, Level.BREAKING))

    # --- everything else ----------------------------------------------------------------------------------------

    def annotations(self) -> Iterator[ContractFinding]:
        """Find what changed in the annotations of a tool; hosts decide by them what they ask their user."""
        sides: list[dict[str, Any]] = [item.raw.get("annotations") or {} for item in self.items]
        old, new = sides
        for name in sorted(old.keys() | new.keys()):
            absent = _EFFECTS.get(name)
            was, now = old.get(name, absent), new.get(name, absent)
            if was != now:
                level = Level.RISKY if name in _EFFECTS else Level.SAFE
                words = f"was {_said(was)}, is {_said(now)}"
                yield self.finding("annotation-changed", f"annotation {name}", words, (level, level))

    def mime_type(self) -> Iterator[ContractFinding]:
        """Return whether a resource is of another type."""
        old, new = (item.raw.get("mimeType") for item in self.items)
        if old != new:
            words = f"was {old or 'not said'}, is {new or 'not said'}"
            yield self.finding("mime-type-changed", "mimeType", words, (Level.RISKY, Level.RISKY))

    def scopes(self) -> Iterator[ContractFinding]:
        """Find what changed in the scopes that a client needs."""
        old, new = (item.raw.get(SCOPES, []) for item in self.items)
        for scope in (scope for scope in new if scope not in old):
            hint = "Tokens need it now: clients that step up ask their user for it, others fail."
            yield self.finding("scope-added", "", f"needs the scope {scope}", (Level.RISKY, Level.SAFE), hint)
        for scope in (scope for scope in old if scope not in new):
            yield self.finding(
                "scope-removed", "", f"does not need the scope {scope} any more", (Level.SAFE, Level.RISKY)
            )

    def others(self) -> Iterator[ContractFinding]:
        """Find members that changed and say nothing about what is sent."""
        old, new = (item.raw for item in self.items)
        for member in sorted((old.keys() | new.keys()) - _HANDLED[self.kind]):
            if old.get(member) != new.get(member):
                yield self.finding(_rule(member), "", f"has another {member}", (Level.SAFE, Level.SAFE))

    # --- helpers ------------------------------------------------------------------------------------------------

    @property
    def entry(self) -> Entry:
        """What the comparison of schemas needs to know."""
        return Entry(self.kind, self.name, self.contracts[0].types, self.contracts[1].types)

    def finding(
        self, rule: str, place: str, words: str, levels: tuple[Level, Level], hint: str = ""
    ) -> ContractFinding:
        """Return a finding about this entry."""
        return ContractFinding(rule, self.kind, self.name, place, words, *levels, hint)


def _rule(member: str) -> str:
    return "description-changed" if member == "description" else "words-changed"


def _said(value: Any) -> str:
    return "not said" if value is None else json.dumps(value, ensure_ascii=False)
