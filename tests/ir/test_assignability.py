"""Assignability of types: the wider type accepts every value of the narrower type; jsonschema-rs is the judge."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_bindgen.ir import build
from mcp_bindgen.ir import model as m
from mcp_bindgen.ir.assignability import Assignability
from mcp_bindgen.ir.examples import Examples
from mcp_bindgen.ir.model import map_parts
from mcp_bindgen.ir.schema import document_of, schema_of
from mcp_bindgen.spec import Store
from tests.harness.effort import examples

Pair = tuple[m.Type, m.Type]
NAMES = ("First", "Second")
MAX_VALUES = 100
LIMITS = st.integers(0, 3)
EXTRA = st.one_of(st.none(), st.just(m.AnyValue(implied=True)), st.just(m.AnyValue()), st.just(m.Scalar("string")))


def limits(*keywords: str) -> st.SearchStrategy[tuple[tuple[str, Any], ...]]:
    """Return a strategy for limits with some of these keywords."""
    return st.dictionaries(st.sampled_from(keywords), LIMITS, max_size=2).map(lambda one: tuple(sorted(one.items())))


LIMITED = {
    "string": limits("minLength", "maxLength"),
    **dict.fromkeys(("integer", "number"), limits("minimum", "exclusiveMaximum")),
}


def scalars() -> st.SearchStrategy[m.Type]:
    """Return a strategy for scalars and constants."""
    return st.one_of(
        *(st.builds(m.Scalar, st.just(kind), limited) for kind, limited in LIMITED.items()),
        st.builds(m.Scalar, st.sampled_from(["boolean", "null"])),
        st.lists(st.sampled_from(["", "a", "ab", 0, 1, 2.5, True, None]), min_size=1, max_size=3).map(
            lambda values: m.Const(tuple({repr(value): value for value in values}.values()))
        ),
    )


def objects(inner: st.SearchStrategy[m.Type]) -> st.SearchStrategy[m.Object]:
    """Return a strategy for objects with up to three members."""
    fields = st.dictionaries(st.sampled_from("abc"), st.tuples(inner, st.booleans()), max_size=3)
    members = fields.map(lambda found: tuple(m.Field(name, *one) for name, one in found.items()))
    return st.builds(m.Object, members, EXTRA)


def containers(inner: st.SearchStrategy[m.Type]) -> st.SearchStrategy[m.Type]:
    """Return a strategy for arrays, maps, unions and objects."""
    return st.one_of(
        st.builds(m.Array, inner, limits("minItems", "maxItems")),
        st.builds(m.Map, inner),
        st.lists(inner, min_size=1, max_size=3).map(lambda types: m.Union(tuple(types))),
        objects(inner),
    )


TYPES = st.recursive(scalars() | st.just(m.AnyValue()) | st.sampled_from(NAMES).map(m.Ref), containers, max_leaves=4)


@st.composite
def similar(draw: st.DrawFn, type: m.Type) -> m.Type:
    """Return a type that differs from the given type in some limits and members."""
    if draw(st.integers(0, 9)) == 0:
        return draw(scalars())
    type = map_parts(type, lambda part: draw(similar(part)))
    match type:
        case m.Scalar(kind) if kind in LIMITED:
            return replace(type, constraints=draw(LIMITED[kind]))
        case m.Array():
            return replace(type, constraints=draw(limits("minItems", "maxItems")))
        case m.Object(fields):
            kept = [replace(field, required=draw(st.booleans())) for field in fields if draw(st.booleans())]
            return m.Object(tuple(kept), draw(EXTRA))
        case _:
            return type


FLAT = scalars() | objects(scalars()) | containers(scalars())


def pairs(types: st.SearchStrategy[m.Type]) -> st.SearchStrategy[tuple[m.Type, m.Type]]:
    """Return a strategy for pairs of similar types."""
    return types.flatmap(lambda type: st.tuples(similar(type), similar(type)))


@st.composite
def protocols(draw: st.DrawFn) -> m.Protocol:
    """Return a protocol of two definitions, which may be recursive."""
    definitions = {name: m.Definition(name, draw(objects(TYPES))) for name in NAMES}
    return m.Protocol("next", "stateless", "", definitions, ())


def closed(type: m.Type) -> m.Type:
    """Return the type of a sender, which sends no undeclared members."""
    type = map_parts(type, closed)
    if isinstance(type, m.Object) and isinstance(type.extra, m.AnyValue) and type.extra.implied:
        return replace(type, extra=None)
    return type


def validator(protocol: m.Protocol, type: m.Type) -> jsonschema_rs.Draft202012Validator:
    """Return the validator of a type."""
    return jsonschema_rs.Draft202012Validator({**document_of(protocol), **schema_of(type)})


def check(receiver: m.Protocol, sender: m.Protocol, wide: m.Type, narrow: m.Type) -> None:
    """Check that the receiver accepts every value of the sender if the types are assignable."""
    if Assignability(receiver, sender).accepts(wide, narrow):
        definitions = {name: replace(one, type=closed(one.type)) for name, one in sender.definitions.items()}
        said = replace(sender, definitions=definitions)
        accepts, sends = validator(receiver, wide), validator(said, closed(narrow))
        values = islice(Examples(said).several(closed(narrow)), MAX_VALUES)
        assert [value for value in values if sends.is_valid(value) and not accepts.is_valid(value)] == []


@pytest.mark.full
@settings(max_examples=examples(300, 1600))
@given(pairs(FLAT))
def test_an_assignable_type_accepts_every_value_of_the_sender(pair: Pair) -> None:
    empty = m.Protocol("next", "stateless", "", {}, ())
    check(empty, empty, *pair)


@pytest.mark.full
@given(protocols(), protocols(), pairs(TYPES))
def test_definitions_are_compared_by_structure(
    receiver: m.Protocol, sender: m.Protocol, pair: tuple[m.Type, m.Type]
) -> None:
    for wide, narrow in (pair, (pair[0], pair[0]), (m.Union(pair), pair[1])):
        check(receiver, sender, wide, narrow)


@pytest.mark.full
def test_every_definition_accepts_itself() -> None:
    for revision in Store().pins:
        protocol = build(Store().effective(revision))
        relation = Assignability(protocol, protocol)
        assert [name for name in protocol.definitions if not relation.accepts(m.Ref(name), m.Ref(name))] == []


def test_limits_members_and_constants_are_compared() -> None:
    rows: list[Any] = [
        (m.Scalar("number"), m.Scalar("integer"), True),
        (m.Scalar("integer"), m.Scalar("number"), False),
        (m.Scalar("string", (("maxLength", 5),)), m.Scalar("string", (("maxLength", 3),)), True),
        (m.Scalar("string", (("maxLength", 3),)), m.Scalar("string", (("maxLength", 5),)), False),
        (m.Scalar("number", (("multipleOf", 2),)), m.Scalar("number", (("multipleOf", 4),)), True),
        (m.Union((m.Scalar("string"), m.Scalar("null"))), m.Const(("a", None)), True),
        (m.Object((m.Field("a", m.Scalar("integer"), False),)), m.Map(m.Scalar("string")), False),
        (m.Map(m.Scalar("string")), m.Object((m.Field("a", m.Scalar("string"), True),)), True),
        (m.Object((m.Field("a", m.AnyValue(), True),)), m.Object((m.Field("a", m.AnyValue(), False),)), False),
    ]
    for wide, narrow, is_accepted in rows:
        protocol = m.Protocol("next", "stateless", "", {}, ())
        assert Assignability(protocol, protocol).accepts(wide, narrow) is is_accepted
