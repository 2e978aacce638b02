"""The five intended differences between models and schemas; docs/explanation/faithfulness.md names them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import TypeAdapter, ValidationError

from mcp_bindgen.spec import Store
from mcp_bindgen.v2025_11_25 import types


def explicit_null() -> None:
    """`null` for an optional member is read as absence, and is not written back."""
    result = types.ListToolsResult.model_validate_json('{"tools": [], "nextCursor": null}')
    assert result.next_cursor is None
    assert result.model_dump_json() == '{"tools":[]}'


def whole_integer() -> None:
    """`1.0` is read as an integer where the schema requires one, and written as `1`."""
    error = types.Error.model_validate_json('{"code": -32603.0, "message": "x"}')
    assert type(error.code) is int
    assert json.loads(error.model_dump_json())["code"] == -32603


def boolean_constant() -> None:
    """The constants `true` and `1` count as equal, and so do `false` and `0`."""
    assert TypeAdapter(Literal[True]).validate_json("1") is True
    constants = [value for revision in Store().pins for value in _constants(Store().effective(revision).definitions)]
    assert not [value for value in constants if value in (0, 1)], "a revision has such a constant: it matters now"


def _constants(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        yield from [node["const"]] if "const" in node and not isinstance(node["const"], dict) else []
        for child in node.values():
            yield from _constants(child)
    elif isinstance(node, list):
        for child in node:
            yield from _constants(child)


def deep_nesting() -> None:
    """Documents nested deeper than about 200 levels are refused."""
    shallow, deep = (f'{{"x": {"[" * depth}1{"]" * depth}}}' for depth in (150, 250))
    TypeAdapter(types.Result).validate_json(shallow)
    with pytest.raises(ValidationError, match="recursion limit"):
        TypeAdapter(types.Result).validate_json(deep)


def huge_number() -> None:
    """Fractions and exponents beyond a double are refused; integers are exact at any size."""
    TypeAdapter(types.Result).validate_json(f'{{"x": {"9" * 400}}}')
    with pytest.raises(ValidationError, match="finite"):
        TypeAdapter(types.Result).validate_json('{"x": 1e400}')


EXCEPTIONS: dict[str, Callable[[], None]] = {
    "explicit-null": explicit_null,
    "whole-integer": whole_integer,
    "boolean-constant": boolean_constant,
    "deep-nesting": deep_nesting,
    "huge-number": huge_number,
}


def test_models_differ_from_schemas_as_documented() -> None:
    for name in EXCEPTIONS:
        EXCEPTIONS[name]()


def test_there_are_at_most_five_exceptions_and_all_are_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "explanation" / "faithfulness.md").read_text("utf-8")
    assert re.findall(r"^### `([a-z-]+)`$", text, re.MULTILINE) == list(EXCEPTIONS)
    assert len(EXCEPTIONS) <= 5


def test_a_string_with_a_lone_surrogate_is_refused() -> None:
    """RFC 8259, 8.2: such a string is not Unicode; the schema validator refuses it as well."""
    for text in ['"\\ud800"', '"\\udc00x"']:
        with pytest.raises(ValidationError):
            TypeAdapter(types.Cursor).validate_json(text)
