"""Generated models accept exactly the documents that the schema accepts, and return them unchanged."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

import jsonschema_rs
import pytest
from pydantic import TypeAdapter, ValidationError

from mcp_bindgen.emit.python import naming
from mcp_bindgen.spec import Store
from tests.harness.effort import cases, examples
from tests.harness.json_instances import Instances, of_definitions

STORE = Store()
EXAMPLES = int(os.environ.get("FAITHFUL_EXAMPLES", examples(5, 80)))
PARTS = [(revision, part) for revision in STORE.pins for part in range(8)]
"""Eighths of the definitions of each revision."""
QUICK = [(revision, 0) for revision in list(STORE.pins)[-2:]]
"""A sample of the definitions of each era's newest revision."""


@cache
def definitions(revision: str) -> dict[str, Any]:
    return dict(STORE.effective(revision).definitions)


@cache
def instances(revision: str) -> Instances:
    return of_definitions(definitions(revision))


def documents(revision: str, part: int, *, damaged: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield random documents for the definitions of a part, each with the name of its definition."""
    source = instances(revision)
    for name in list(definitions(revision))[part::8]:
        source.reseed(f"{name} {damaged}")
        for _ in range(EXAMPLES):
            document = source.of(name)
            yield name, source.mutant(document, allows_infinite=True) if damaged else document


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


def back(revision: str, name: str, wire: bytes) -> Any:
    """Return what the model of a definition makes of a document."""
    types = adapter(revision, name)
    return json.loads(types.dump_json(types.validate_json(wire)))


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


@pytest.mark.parametrize(("revision", "part"), cases(PARTS, quick=QUICK))
def test_valid_documents_come_back_unchanged(revision: str, part: int) -> None:
    """bytes -> model -> bytes is the same document, for every document that the schema accepts."""
    for name, document in documents(revision, part):
        assert accepts(revision, name, document), f"{name}: the test's own generator is wrong"
        assert same(back(revision, name, json.dumps(document).encode()), document), name


@pytest.mark.parametrize(("revision", "part"), cases(PARTS, quick=QUICK))
def test_models_and_schemas_agree_on_damaged_documents(revision: str, part: int) -> None:
    """The model accepts the documents that the validator accepts, and besides only explicit nulls."""
    for name, document in documents(revision, part, damaged=True):
        wire = json.dumps(document).encode()
        try:
            returned = back(revision, name, wire)
        except ValidationError:
            assert not accepts(revision, name, document), f"{name}: a valid document is refused"
            continue
        assert equal(returned, without_nulls(document, returned)), f"{name}: an accepted member is missing or changed"
        assert accepts(revision, name, returned), f"{name}: the returned document is invalid"
        if not accepts(revision, name, document):
            assert not equal(returned, document), f"{name}: an invalid document is accepted without a null member"
