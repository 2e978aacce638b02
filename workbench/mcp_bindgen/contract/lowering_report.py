"""Report of `contract lower`: verdicts on the tools that are lowered for a model provider."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mcp_bindgen.lowering import Effect, Lowered, Profile, Reason, Verdict, estimated_tokens, exceeded_budgets
from mcp_bindgen.report.document import (
    NOWHERE,
    Block,
    Document,
    Evidence,
    Finding,
    Findings,
    Level,
    Paragraph,
    Place,
    Section,
    code,
    literal,
    plural,
)

Places = Callable[[str, str], Place]
"""Function from the name of a tool, and a JSON Pointer in its schema, to the place in the contract."""

_LEVELS = {Effect.REFUSED: Level.ERROR, Effect.NARROWED: Level.WARNING, Effect.GUARDED: Level.WARNING}
_MAX_WITNESS_CHARACTERS = 120


def nowhere(tool: str, pointer: str) -> Place:
    """Return no place, for formats that do not show it."""
    return NOWHERE


def record(tools: Sequence[Lowered], profile: Profile) -> dict[str, Any]:
    """Return the profile, and the verdict, schema and reasons of each tool; a reason ends with its edit."""
    return {
        "profile": profile.name,
        "tools": [
            {
                "name": one.tool,
                "verdict": one.verdict,
                "schema": one.schema,
                "reasons": [
                    {"pointer": reason.pointer, "rule": reason.rule, "reason": f"{reason.text}; {reason.fix}"}
                    for reason in one.reasons
                ],
            }
            for one in tools
        ],
    }


def document(tools: Sequence[Lowered], profile: Profile, places: Places = nowhere) -> Document:
    """Return the verdicts: a summary, then each tool that is not exact with its reasons."""
    return Document("contract lower", [Section(_title(tools, profile), list(_blocks(tools, profile, places)))])


def _title(tools: Sequence[Lowered], profile: Profile) -> str:
    counts = Counter(one.verdict for one in tools)
    verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]) or "none"
    return f"{plural(len(tools), 'tool')} for {literal(profile.title)}: {verdicts}."


def _blocks(tools: Sequence[Lowered], profile: Profile, places: Places) -> Iterator[Block]:
    before = estimated_tokens({"name": one.tool, "parameters": one.source} for one in tools)
    after = estimated_tokens({"name": one.name, "parameters": one.schema} for one in tools)
    yield Paragraph(f"Estimated tokens of names and schemas: {before} before, {after} after.")
    for budget in exceeded_budgets(tools, profile):
        yield Paragraph(f"The request is too large: {budget}.")
    for one in tools:
        if one.verdict is not Verdict.EXACT:
            renamed = f", as {literal(one.name)}" if one.name != one.tool else ""
            findings = [_finding(one, reason, places(one.tool, reason.pointer)) for reason in one.reasons]
            yield Section(f"{literal(one.tool)}: {one.verdict}{renamed}", [Findings(findings)])


def _finding(tool: Lowered, reason: Reason, place: Place) -> Finding:
    where = f"{literal(tool.tool)}: {code(reason.pointer)}"
    return Finding(
        rule=reason.rule,
        level=_LEVELS.get(reason.effect, Level.NOTE),
        message=f"{where}: {literal(reason.text)}; {literal(reason.fix)} [{reason.rule}]",
        place=place,
        evidence=_evidence(tool, reason),
    )


def _evidence(tool: Lowered, reason: Reason) -> Evidence | None:
    found = tool.witness(reason) if reason.effect is Effect.NARROWED else None
    is_short = found is not None and len(json.dumps(found)) <= _MAX_WITNESS_CHARACTERS
    return Evidence("Lost", found, has_value=True) if is_short else None
