"""Generated models accept exactly the documents that the schema accepts, and return them unchanged."""

from __future__ import annotations

import json
import math
import os
from functools import cache
from importlib import import_module
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import TypeAdapter, ValidationError

from mcp_bindgen.emit.python import naming
from mcp_bindgen.spec import Store
from tests.support.effort import cases, examples
from tests.support.json_instances import Instances, damaged, of_definitions

STORE = Store()
EXAMPLES = int(os.environ.get("FAITHFUL_EXAMPLES", examples(3, 12)))
DEFINITIONS = [(revision, name) for revision in STORE.pins for name in STORE.effective(revision).definitions]
NEWEST = list(STORE.pins)[-2:]
QUICK = [case for case in DEFINITIONS if case[0] in NEWEST][::8]
"""A sample of the definitions of each era's newest revision."""

run = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@cache
def definitions(revision: str) -> dict[str, Any]:
    return dict(STORE.effective(revision).definitions)


@cache
def instances(revision: str) -> Instances:
    return of_definitions(definitions(revision))


@cache
def adapter(revision: str, name: str) -> TypeAdapter[Any]:
    return TypeAdapter(getattr(import_module(f"mcp_bindgen.{naming.package(revision)}.types"), name))


@cache
def oracle(revision: str, name: str) -> Any:
    return jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions(revision)})


def is_json(document: Any) -> bool:
    """Return True if all numbers are finite: NaN and Infinity are not JSON."""
    if isinstance(document, dict):
        return all(map(is_json, document.values()))
    if isinstance(document, list):
        return all(map(is_json, document))
    return not isinstance(document, float) or math.isfinite(document)


def accepts(revision: str, name: str, document: Any) -> bool:
    return is_json(document) and oracle(revision, name).is_valid(document)


def same(left: Any, right: Any) -> bool:
    """Return True if two JSON documents are the same, types included: 1 is not 1.0, true is not 1."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def equal(left: Any, right: Any) -> bool:
    """Return True if two documents are equal in the sense of JSON Schema, where 1 and 1.0 are the same number."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def without_nulls(document: Any, kept: Any) -> Any:
    """Return `document` without the null members that `kept` does not have."""
    if isinstance(document, dict) and isinstance(kept, dict):
        return {
            key: without_nulls(value, kept.get(key))
            for key, value in document.items()
            if value is not None or key in kept
        }
    if isinstance(document, list) and isinstance(kept, list) and len(document) == len(kept):
        return [without_nulls(value, other) for value, other in zip(document, kept, strict=True)]
    return document


@pytest.mark.parametrize(("revision", "name"), cases(DEFINITIONS, quick=QUICK))
def test_valid_documents_come_back_unchanged(revision: str, name: str) -> None:
    """bytes -> model -> bytes is the same document, for every document that the schema accepts."""
    types = adapter(revision, name)

    @run
    @given(instances(revision).strategy_of(name))
    def check(document: Any) -> None:
        assert accepts(revision, name, document), "the test's own generator is wrong"
        assert same(json.loads(types.dump_json(types.validate_json(json.dumps(document).encode()))), document)

    check()


@pytest.mark.parametrize(("revision", "name"), cases(DEFINITIONS, quick=QUICK))
def test_models_and_schemas_agree_on_damaged_documents(revision: str, name: str) -> None:
    """The model accepts the documents that the validator accepts, and besides only explicit nulls."""
    types = adapter(revision, name)

    @run
    @given(damaged(instances(revision).strategy_of(name)))
    def check(document: Any) -> None:
        wire = json.dumps(document).encode()
        try:
            back = json.loads(types.dump_json(types.validate_json(wire)))
        except ValidationError:
            assert not accepts(revision, name, document)
            return
        assert equal(back, without_nulls(document, back)), "what was accepted must come back"
        assert accepts(revision, name, back), "what comes back must be valid"
        if not accepts(revision, name, document):
            assert not equal(back, document), "only an explicit null may be let pass"

    check()
