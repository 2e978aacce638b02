"""Payloads of every revision, and their conversions and validators, for tests of bridges."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import jsonschema_rs
from hypothesis import strategies as st

from mcp_bindgen.bridging.chain import Chain, Conversion, LossReport, Part
from mcp_bindgen.bridging.converter import drop_collisions
from mcp_bindgen.conversion.differences import Plan
from mcp_bindgen.conversion.steps import plans
from mcp_bindgen.ir import Protocol, build
from mcp_bindgen.ir.model import Object, Ref, Type
from mcp_bindgen.spec import Store
from tests.harness.json_instances import Instances, odd_names, of_definitions

Json = Any

STORE = Store()
REVISIONS = tuple(STORE.pins)
STEPS = [step for pair in pairwise(REVISIONS) for step in (pair, pair[::-1])]


def protocol(revision: str) -> Protocol:
    return build(STORE.effective(revision))


@cache
def definitions(revision: str) -> dict[str, Any]:
    return dict(STORE.effective(revision).definitions)


@cache
def every_plan() -> tuple[Plan, ...]:
    return tuple(plans(STORE))


def plan(source: str, target: str) -> Plan:
    return next(one for one in every_plan() if (one.source.revision, one.target.revision) == (source, target))


@dataclass(frozen=True)
class Payload:
    """The params or the results of a method in one revision."""

    revision: str
    method: str
    part: Part

    def __str__(self) -> str:
        return f"{self.method} {self.part}"

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """Schemas of the params, or of the result and its alternatives."""
        method = next(one for one in protocol(self.revision).methods if one.name == self.method)
        if self.part == "params":
            found: dict[str, Any] = definitions(self.revision)[method.definition]["properties"]["params"]
            return [found]
        assert method.result is not None
        names = [_schema_name(one) for one in (method.result, *method.alternatives)]
        return [{"$ref": f"#/$defs/{name}"} for name in names]

    @property
    def validator(self) -> jsonschema_rs.Draft202012Validator:
        return _validator(self)

    def counterpart(self, revision: str) -> Payload | None:
        """Return the same payload in another revision, or None if that revision does not have it."""
        other = Payload(revision, self.method, self.part)
        return other if other in payloads(revision) else None

    def of(self, chain: Chain) -> Conversion | None:
        """Return the conversion of this payload in a chain."""
        return chain.params(self.method) if self.part == "params" else chain.results(self.method)


def _schema_name(type: Type) -> str:
    assert isinstance(type, Ref)
    return type.name


@cache
def _validator(payload: Payload) -> jsonschema_rs.Draft202012Validator:
    schemas, shared = payload.schemas, definitions(payload.revision)
    whole = {"anyOf": schemas} if len(schemas) > 1 else schemas[0]
    return jsonschema_rs.Draft202012Validator({**whole, "$defs": shared}, validate_formats=False)


@cache
def payloads(revision: str) -> tuple[Payload, ...]:
    """Return all params and results of a revision."""
    return tuple(_payloads(revision))


def _payloads(revision: str) -> Iterator[Payload]:
    for method in protocol(revision).methods:
        if method.params is not None:
            yield Payload(revision, method.name, "params")
        if method.result is not None:
            yield Payload(revision, method.name, "results")


@cache
def names(*revisions: str) -> tuple[str, ...]:
    """Return all member names that occur in some revisions."""
    found: dict[str, None] = {}

    def collect(node: Any) -> None:
        if isinstance(node, dict):
            for name in node.get("properties", {}):
                found[name] = None
            for child in node.values():
                collect(child)
        elif isinstance(node, list):
            for child in node:
                collect(child)

    for revision in revisions:
        collect(definitions(revision))
    return tuple(sorted(found))


@cache
def instances(revision: str) -> Instances:
    """Return a source of valid values that also have members which only other revisions define."""
    return of_definitions(definitions(revision), names=odd_names(*names(*REVISIONS)))


@cache
def values(payload: Payload) -> st.SearchStrategy[Json]:
    """Return valid values of a payload; a `resultType` always has its default, as schemas do not restrict it."""
    return st.one_of([_marked(payload, schema) for schema in payload.schemas])


def _marked(payload: Payload, schema: dict[str, Any]) -> st.SearchStrategy[Json]:
    found = instances(payload.revision).strategy(schema)
    definition = protocol(payload.revision).definitions.get(schema.get("$ref", "").rpartition("/")[2])
    mark = definition.type.field("resultType") if definition and isinstance(definition.type, Object) else None
    return found if mark is None else found.map(lambda value: {**value, mark.wire: mark.default})


def text(value: Json) -> bytes:
    """Return a value as compact JSON without unnecessary escapes, as the product writes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def converted(conversion: Conversion | None, value: Json, notes: LossReport | None = None) -> Json:
    """Convert a copy of a value; raise `NotConvertible` if that is impossible."""
    own = copy.deepcopy(value)
    return own if conversion is None else conversion.convert(own, notes or LossReport())


def settled(value: Json, payload: Payload, conversion: Conversion | None, claims: frozenset[str]) -> Json:
    """Return a converted value as an adapter passes it on: with connection metadata, without colliding fields."""
    value = _introduced(value, payload)
    for _ in range(100):
        error = next(payload.validator.iter_errors(value), None)
        if error is None or not drop_collisions(value, [_location(error)], claims):
            break
        value = _introduced(converted(conversion, value), payload)
    return value


def _location(error: jsonschema_rs.ValidationError) -> Sequence[str | int]:
    return error.instance_path


def _introduced(value: Json, payload: Payload) -> Json:
    """Add the `_meta` of a connection to the params of a stateless request."""
    is_request = any(
        m.name == payload.method and m.kind == "request" and m.carrier == "message"
        for m in protocol(payload.revision).methods
    )
    if payload.part == "results" or protocol(payload.revision).era == "stateful" or not is_request:
        return value
    meta = value.get("_meta")
    own = {
        "io.modelcontextprotocol/protocolVersion": payload.revision,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {**value, "_meta": {**(meta if isinstance(meta, dict) else {}), **own}}
