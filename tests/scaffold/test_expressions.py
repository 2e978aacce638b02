"""Example values of the model's types, and the Python expressions that build them."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from mcp_bindgen.emit.python import naming
from mcp_bindgen.emit.python.environment import style
from mcp_bindgen.emit.python.expressions import expression
from mcp_bindgen.emit.python.lowered import PythonProtocol
from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.ir import Protocol, build
from mcp_bindgen.ir.examples import Code, Unfit, example, fits
from mcp_bindgen.ir.model import AnyValue, Array, Const, Definition, Field, Map, Object, Ref, Scalar, Union
from mcp_bindgen.spec import EffectiveSchema, Store
from tests.harness.effort import cases

REVISIONS = list(Store().pins)


@cache
def schema(revision: str) -> EffectiveSchema:
    return Store().effective(revision)


@cache
def protocol(revision: str) -> PythonProtocol:
    return lower(build(schema(revision)))


def types(revision: str) -> Any:
    return import_module(f"mcp_bindgen.{naming.package(revision)}").types


def built(revision: str, name: str, source: str) -> Any:
    """Return the value of an expression, in wire form."""
    value = eval(source, {"mcp": types(revision)})
    return json.loads(TypeAdapter(getattr(types(revision), name)).dump_json(value, by_alias=True))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("revision", cases(REVISIONS, quick=["2024-11-05"]))
def test_every_definition_has_an_example_that_its_json_schema_accepts(revision: str, full: bool) -> None:
    definitions = dict(schema(revision).definitions)
    for name in protocol(revision).definitions:
        value = example(protocol(revision), Ref(name), full=full)
        assert fits(protocol(revision), Ref(name), value), name
        assert built(revision, name, expression(protocol(revision), Ref(name), value)) == value, name
        if name in definitions:
            jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions}).validate(value)


@pytest.mark.parametrize(("text", "is_accepted"), [("é", True), ("1", False), ("é\n", False)])
def test_patterns_are_those_of_ecma(text: str, is_accepted: bool) -> None:
    letters = Scalar("string", constraints=(("pattern", r"^\p{L}+$"),))
    assert fits(protocol("2024-11-05"), letters, text) is is_accepted


def test_an_integral_number_is_written_as_an_integer_where_the_type_is_integer() -> None:
    integer, number = Scalar("integer"), Scalar("number")
    known = protocol("2024-11-05")
    assert expression(known, Array(integer), [-2.0, 3]) == "[-2, 3]"
    assert expression(known, Union((Scalar("string"), integer)), 2.0) == "2"
    assert expression(known, number, 2.0) == "2.0"


def values(revision: str) -> str:
    """Return the source of a module with an example of each result and params type."""
    lines = [f"from mcp_bindgen.{naming.package(revision)} import types as mcp"]
    for method in protocol(revision).methods:
        for type in (method.result, *method.alternatives, method.params):
            if isinstance(type, Ref):
                for full in (False, True):
                    source = expression(protocol(revision), type, example(protocol(revision), type, full=full))
                    lines.append(f"value_{len(lines)}: mcp.{type.name} = {source}")
    return style("\n".join(lines))


def write_values(folder: Path) -> None:
    """Write a module of examples for each revision, which `test_types.py` checks."""
    for revision in REVISIONS:
        (folder / f"{naming.package(revision)}.py").write_text(values(revision), "utf-8")


def of(*definitions: tuple[str, Any]) -> PythonProtocol:
    return lower(Protocol("x", "stateful", "", {name: Definition(name, type) for name, type in definitions}, ()))


LIMITS = st.fixed_dictionaries(
    {}, optional={"minimum": st.integers(-50, 50), "maximum": st.integers(60, 99), "multipleOf": st.integers(1, 7)}
)


@given(LIMITS)
def test_example_numbers_satisfy_their_limits(limits: dict[str, int]) -> None:
    value = example(of(), Scalar("integer", tuple(limits.items())))
    jsonschema_rs.validator_for({"type": "integer", **limits}).validate(value)


@given(st.integers(0, 40), st.integers(0, 40))
def test_example_strings_satisfy_their_length_limits(least: int, more: int) -> None:
    limits = {"minLength": least, "maxLength": least + more}
    value = example(of(), Scalar("string", tuple(limits.items())))
    jsonschema_rs.validator_for({"type": "string", **limits}).validate(value)


def test_examples_of_recursive_types_are_finite_or_refused() -> None:
    tree = Object((Field("below", Array(Ref("Tree")), True), Field("up", Ref("Tree"), False)))
    assert example(of(("Tree", tree)), Ref("Tree")) == {"below": []}
    assert example(of(("Tree", tree)), Ref("Tree"), full=True) == {"below": []}
    endless = of(("A", Object((Field("b", Ref("B"), True),))), ("B", Object((Field("a", Ref("A"), True),))))
    with pytest.raises(Unfit):
        example(endless, Ref("A"))
    choice = of(("A", Object((Field("b", Union((Ref("A"), Const(("end",)))), True),))))
    assert example(choice, Ref("A")) == {"b": "end"}


def test_code_may_replace_a_value_in_an_expression() -> None:
    words = of(("A", Object((Field("toDo", Scalar("string"), True), Field("more", AnyValue(), False)))))
    assert expression(words, Ref("A"), {"toDo": Code("params.x")}) == "mcp.A(to_do=params.x)"
    assert expression(words, Map(Ref("A")), {"b": {"toDo": "c", "more": [Code("d")]}}, "models.") == (
        '{"b": models.A(to_do="c", more=[d])}'
    )


def test_undeclared_members_are_built_with_model_validate() -> None:
    words = of(("A", Object((Field("kind", Const(("a",)), True),))))
    assert expression(words, Ref("A"), {"x-y": 1}) == 'mcp.A.model_validate({"kind": "a", "x-y": 1})'
    closed = of(("A", Object((), extra=None)))
    with pytest.raises(Unfit):
        expression(closed, Ref("A"), {"x": 1})


def test_a_value_that_does_not_fit_its_type_is_refused() -> None:
    rows: list[Any] = [1, True, None, [], {}, "b"]
    for value in rows:
        with pytest.raises(Unfit):
            expression(of(), Const(("a",)), value)
