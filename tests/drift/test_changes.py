"""Verdicts on small changes of schemas, for sensible callers."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from mcp_bindgen.contract.comparison.witness import witness
from mcp_bindgen.drift.callers import callers
from mcp_bindgen.drift.changes import Relation, Verdict, relate

TABLE: dict[str, dict[str, list[str]]] = tomllib.loads(
    (Path(__file__).with_name("changes.toml")).read_text(encoding="utf-8")
)
ROWS = [(verdict, says, *row) for verdict, rows in TABLE.items() for says, row in rows.items()]


def relation(part: str, old: str, new: str) -> Relation:
    """Return the relation of a row of the table."""
    sides: list[Any] = [json.loads(old), json.loads(new)]
    if part in ("argument", "member"):
        needed = ["x"] if part == "member" else []
        sides = [{"type": "object", "properties": {"x": one}, "required": needed} for one in sides]
    return Relation("arguments" if part.startswith("argument") else "result", *sides)


@pytest.mark.parametrize(("verdict", "says", "part", "old", "new"), ROWS, ids=[row[1] for row in ROWS])
def test_verdict(verdict: str, says: str, part: str, old: str, new: str) -> None:
    (found,) = relate([relation(part, old, new)], callers(), search=witness)
    if verdict == "unless":
        assert found.verdict in (Verdict.BREAKING, Verdict.COMPATIBLE)
        return
    assert found.verdict.name.lower() == verdict, found
    if verdict == "breaking":
        assert found.witness is not None
        sender, receiver = found.schemas
        assert jsonschema_rs.is_valid(sender, found.witness.value)
        is_call = found.part == "arguments"
        assert not (is_call and jsonschema_rs.is_valid(receiver, found.witness.value)), found.witness


def test_a_number_that_callers_do_not_send_proves_no_break() -> None:
    limits = {"minimum": -(2**53) + 1, "maximum": 2**53 - 1}
    found = relation("argument", '{"type":"array"}', json.dumps({"type": "array", "items": limits}))
    assert relate([found], callers(), search=witness)[0].verdict is not Verdict.BREAKING
    assert relate([found], callers("strict"), search=witness)[0].verdict is Verdict.BREAKING


@pytest.mark.parametrize("levels", [100, 200, 300, 900])
def test_schemas_that_are_nested_deeply_are_unproven(levels: int) -> None:
    old: Any = {"type": "string"}
    new: Any = {"type": "integer"}
    for _ in range(levels):
        old, new = ({"type": "array", "items": one} for one in (old, new))
    before, after = ({"type": "object", "properties": {"x": one}} for one in (old, new))
    (found,) = relate([Relation("arguments", before, after)], callers(), search=witness)
    assert found.verdict is Verdict.UNPROVEN
