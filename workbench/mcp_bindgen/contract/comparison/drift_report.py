"""Report of `lock check`: a section for each server, with diffs of texts and values that prove breaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mcp_bindgen.app.catalog import KINDS
from mcp_bindgen.drift.callers import Callers
from mcp_bindgen.drift.changes import Change, Part, Witness
from mcp_bindgen.report import document as doc
from mcp_bindgen.spec.errors import printable
from mcp_bindgen.spec.json import join
from mcp_bindgen.spec.jsonc import Located

from .report import new_hints, text_diff, word

_STATES: Mapping[str, tuple[doc.Level, str]] = {
    "breaking": (doc.Level.ERROR, "Change the callers, or keep the locked version of the server."),
    "unproven": (doc.Level.ERROR, "Review both schemas and run mcp-bindgen lock to accept the change."),
    "text-changed": (doc.Level.WARNING, "Review the text and run mcp-bindgen lock to accept it."),
    "added": (doc.Level.NOTE, "Review it and run mcp-bindgen lock to offer it."),
    "compatible": (doc.Level.NOTE, ""),
    "notation": (doc.Level.NOTE, ""),
}
"""State of a change, the worst first -> level and fix of its finding."""

Servers = Mapping[str, Sequence[Change]]
"""Server -> its changes, the worst first."""


class LockPlaces:
    """Places of entries in a lock file.

    Args:
        path: The lock file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._located = Located(path.read_text("utf-8"))

    def of(self, server: str, one: Change) -> doc.Place:
        """Return the place of a change."""
        pointer = _pointer(server, one)
        return doc.Place(str(self._path), pointer, self._located.line(pointer))


def document(servers: Servers, callers: Callers, places: LockPlaces | None = None) -> doc.Document:
    """Return the report; `places` for formats that show lines."""
    sections = [_section(name, found, places) for name, found in servers.items()]
    return doc.Document(f"lock check for {callers.name} callers", sections)


def record(servers: Servers, callers: Callers) -> dict[str, Any]:
    """Return the report as JSON: every change, with changed texts and a value that proves a break."""
    changes = {name: [_record(name, one) for one in found] for name, found in servers.items()}
    return {"callers": callers.name, "servers": changes}


def _record(server: str, one: Change) -> dict[str, Any]:
    proof = _proof(one)
    return {
        "kind": one.kind,
        "name": one.name,
        "pointer": _pointer(server, one),
        "verdict": word(one.verdict),
        "reasons": list(one.reasons),
        "isNew": one.is_new,
        "earlierContract": one.age,
        "texts": [
            {"place": place, "old": list(old), "new": list(new), "hints": new_hints(old, new)}
            for place, old, new in one.texts
        ],
        "witness": proof and {"part": proof[0], **asdict(proof[1])},
    }


def _pointer(server: str, one: Change) -> str:
    """Return the JSON Pointer of an entry in the lock; one that the lock does not have is at its server."""
    place = join("/servers", server)
    if one.kind == "server" or one.is_new or one.age:
        return place
    return join(place, KINDS[one.kind].member, one.name)


def _section(server: str, found: Sequence[Change], places: LockPlaces | None) -> doc.Section:
    states = [_state(one) for one in found]
    counts = [f"{count} {_words(state)}" for state in _STATES if (count := states.count(state))]
    blocks: list[doc.Block] = []
    for one in found:
        blocks.append(doc.Findings([_finding(one, doc.NOWHERE if places is None else places.of(server, one))]))
        if one.texts:
            blocks.append(doc.Code(text_diff(one.texts), "diff"))
    return doc.Section(f"{server}: {', '.join(counts) or 'same'}", blocks)


def _finding(one: Change, place: doc.Place) -> doc.Finding:
    state = _state(one)
    level, fix = _STATES[state]
    reasons = "; ".join([*one.reasons, *(f"{where} changed" for where, _, _ in one.texts)])
    warnings = [f"{where}: {hint}" for where, old, new in one.texts for hint in new_hints(old, new)]
    proof = _proof(one)
    return doc.Finding(
        rule=f"lock-{state}",
        level=level,
        message=f"{doc.code(f'{one.kind} {one.name}'.rstrip())} {doc.literal(f'{_words(state)}: {reasons}')}",
        effect=" ".join(f"{doc.literal(printable(words))}." for words in warnings),
        note=f"Compared with the contract {one.age} before the locked one." if one.age else "",
        fix=fix,
        place=place,
        evidence=proof and doc.Evidence(f"{proof[0]}: {proof[1].problem or 'refused'}", proof[1].value, has_value=True),
    )


def _state(one: Change) -> str:
    """Return the verdict in a word, or what else keeps an entry closed."""
    if one.is_new and one.verdict.is_open:
        return "added"
    return "text-changed" if one.texts and one.verdict.is_open else word(one.verdict)


def _words(state: str) -> str:
    return state.replace("-", " ")


def _proof(one: Change) -> tuple[Part, Witness] | None:
    """Return a value that proves a break, with the part that refuses it."""
    return next(((found.part, found.witness) for found in one.relations if found.witness is not None), None)
