"""Report of `contract lower`: verdicts on the tools that are lowered for a model provider."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mcp_bindgen.lowering import Effect, Lowered, Profile, Reason, Verdict, estimated_tokens, exceeded_budgets
from mcp_bindgen.report import document as doc

Places = Callable[[str, str], doc.Place]
"""Function from the name of a tool, and a JSON Pointer in its schema, to the place in the contract."""

_LEVELS = {Effect.REFUSED: doc.Level.ERROR, Effect.NARROWED: doc.Level.WARNING, Effect.GUARDED: doc.Level.WARNING}
_MAX_WITNESS_CHARACTERS = 120


def nowhere(tool: str, pointer: str) -> doc.Place:
    """Return no place, for formats that do not show it."""
    return doc.NOWHERE


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


def document(tools: Sequence[Lowered], profile: Profile, places: Places = nowhere) -> doc.Document:
    """Return the verdicts: a summary, then each tool that is not exact with its reasons."""
    return doc.Document("contract lower", [doc.Section(_title(tools, profile), list(_blocks(tools, profile, places)))])


def _title(tools: Sequence[Lowered], profile: Profile) -> str:
    counts = Counter(one.verdict for one in tools)
    verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]) or "none"
    return f"{doc.plural(len(tools), 'tool')} for {doc.literal(profile.title)}: {verdicts}."


def _blocks(tools: Sequence[Lowered], profile: Profile, places: Places) -> Iterator[doc.Block]:
    before = estimated_tokens({"name": one.tool, "parameters": one.source} for one in tools)
    after = estimated_tokens({"name": one.name, "parameters": one.schema} for one in tools)
    yield doc.Paragraph(f"Estimated tokens of names and schemas: {before} before, {after} after.")
    for budget in exceeded_budgets(tools, profile):
        yield doc.Paragraph(f"The request is too large: {budget}.")
    for one in tools:
        if one.verdict is not Verdict.EXACT:
            renamed = f", as {doc.literal(one.name)}" if one.name != one.tool else ""
            findings = [_finding(one, reason, places(one.tool, reason.pointer)) for reason in one.reasons]
            yield doc.Section(f"{doc.literal(one.tool)}: {one.verdict}{renamed}", [doc.Findings(findings)])


def _finding(tool: Lowered, reason: Reason, place: doc.Place) -> doc.Finding:
    where = f"{doc.literal(tool.tool)}: {doc.code(reason.pointer)}"
    return doc.Finding(
        rule=reason.rule,
        level=_LEVELS.get(reason.effect, doc.Level.NOTE),
        message=f"{where}: {doc.literal(reason.text)}; {doc.literal(reason.fix)} [{reason.rule}]",
        place=place,
        evidence=_evidence(tool, reason),
    )


def _evidence(tool: Lowered, reason: Reason) -> doc.Evidence | None:
    found = tool.witness(reason) if reason.effect is Effect.NARROWED else None
    is_short = found is not None and len(json.dumps(found)) <= _MAX_WITNESS_CHARACTERS
    return doc.Evidence("Lost", found, has_value=True) if is_short else None
