"""Patterns in generated models mean what they mean in JSON Schema, whose classes are those of ECMA-262."""

from __future__ import annotations

from pathlib import Path

import jsonschema_rs
import pytest
from pydantic import TypeAdapter, ValidationError

from tests.emit.test_reserved_names import bindings
from tests.harness.small_schemas import small

PATTERNS = (
    *(r"^\d+$", r"^\D$", r"^\w+$", r"^\W+$", r"^\s$", r"^\S$", "^.$", r"^\.$", r"^\\.$", r"^\\d$"),
    *(
        r"^[\d]$",
        r"^[^\d]$",
        r"^[\w-]+$",
        r"^[^\W]$",
        r"^[\s\d]$",
        r"^[\S]$",
        "^[.]$",
        r"^[\].]$",
        r"^[a\\.]$",
        "^[a-c.x]+$",
    ),
    *(r"^(\d{4})-(\d\d)$", "^(?:a|.b)$", r"^\u00e9$", "^a.{2}b$", r"^/[\w/]*$"),
)
TEXTS = (
    *("0", "٣", "a", "é", "_", "-", ".", "\\", "]", "\\.", "\\a", "\\d", "d", "x", "", "ab", "a-b"),
    *(
        " ",
        "\t",
        "\n",
        "\r",
        "\u2028",
        "\u2029",
        "\x85",
        "\xa0",
        "\ufeff",
        "\u200b",
        "2026-11",
        "٢026-11",
        "axxb",
        "/a/é",
        "/a/b",
    ),
)


@pytest.mark.full
def test_a_pattern_matches_the_same_texts_as_in_json_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    schemas = [{"type": "string", "pattern": pattern} for pattern in PATTERNS]
    types = bindings(tmp_path, "patterns", small({f"P{number}": schema for number, schema in enumerate(schemas)}))
    for number, schema in enumerate(schemas):
        model, oracle = TypeAdapter[str](getattr(types, f"P{number}")), jsonschema_rs.Draft202012Validator(schema)
        assert {text for text in TEXTS if is_valid(model, text)} == set(filter(oracle.is_valid, TEXTS)), schema


def is_valid(model: TypeAdapter[str], text: str) -> bool:
    try:
        model.validate_python(text)
    except ValidationError:
        return False
    return True
