"""Validators accept exactly the documents that the schema accepts, and lose nothing."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.commands import UPSTREAM
from tests.support.effort import cases, examples
from tests.support.json_instances import Instances, damaged, odd_names, of_definitions
from tests.typescript.packages import DRAFTS, REVISIONS, Document, definitions, judge

DOCUMENTS = int(os.environ.get("TYPESCRIPT_DOCUMENTS", examples(25, 100)))
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example]
EXAMPLES = Path(os.environ.get("MCP_EXAMPLES") or UPSTREAM / "2026-07-28" / "examples")
"""Folder of the examples in the specification repository; the project must not contain them."""


def random_documents(revision: str, count: int) -> list[Document]:
    """Return valid and damaged documents: some of each definition, and `count` odd ones of random definitions."""
    schemas = definitions(revision)
    instances = of_definitions(schemas, names=odd_names("constructor", "toString", "__proto__", "x"))
    found: list[Document] = []
    for name in schemas:
        near = Instances({"$ref": f"#/$defs/{name}", "$defs": schemas}, f"{revision} {name}")
        found += [(revision, name, json.dumps(one)) for one in [*near.valid(4, 20), *near.invalid(12, 40)]]

    def documents(name: str) -> st.SearchStrategy[tuple[str, Any]]:
        valid = instances.strategy_of(name)
        return st.tuples(st.just(name), valid | damaged(valid))

    @settings(max_examples=count, deadline=None, derandomize=True, database=None, suppress_health_check=SLOW)
    @given(st.sampled_from(sorted(schemas)).flatmap(documents))
    def collect(one: tuple[str, Any]) -> None:
        name, document = one
        found.append((revision, name, json.dumps(document)))

    collect()
    return found


def is_valid(document: Document, oracles: dict[str, Any]) -> bool:
    """Return the verdict of the schema. NaN and infinite numbers are no JSON."""
    revision, name, text = document
    if name not in oracles:
        oracles[name] = jsonschema_rs.Draft202012Validator(
            {"$ref": f"#/$defs/{name}", "$defs": definitions(revision)}, validate_formats=False
        )
    value = json.loads(text)
    valid: bool = is_json(value) and oracles[name].is_valid(value)
    return valid


def is_json(value: Any) -> bool:
    """Return True if all numbers of a document are finite."""
    if isinstance(value, dict):
        return all(map(is_json, value.values()))
    if isinstance(value, list):
        return all(map(is_json, value))
    return not isinstance(value, float) or math.isfinite(value)


def as_doubles(value: Any) -> Any:
    """Return a document with its integers as JavaScript reads them."""
    if isinstance(value, dict):
        return {name: as_doubles(member) for name, member in value.items()}
    if isinstance(value, list):
        return [as_doubles(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@pytest.mark.full
@pytest.mark.parametrize("revision", cases([*REVISIONS, *DRAFTS], quick=["2025-11-25"]))
def test_validators_agree_with_the_schema_on_random_documents(revision: str) -> None:
    documents = random_documents(revision, DOCUMENTS)
    oracles: dict[str, Any] = {}
    verdicts = judge(documents)
    judged = zip(documents, verdicts, strict=True)
    wrong = [one for one, (fault, _) in judged if (fault is None) != is_valid(one, oracles)]
    assert not wrong, f"{len(wrong)} of {len(documents)}: {wrong[:3]}"
    for (_, _, text), (_, back) in zip(documents, verdicts, strict=True):
        assert back is None or as_doubles(json.loads(back)) == as_doubles(json.loads(text))


def test_official_examples_are_read_without_a_loss() -> None:
    if not EXAMPLES.is_dir():
        pytest.skip("the examples of the specification are not here")
    files = sorted(EXAMPLES.glob("*/*.json"))
    assert len(files) == 129
    documents = [("2026-07-28", file.parent.name, file.read_text("utf-8")) for file in files]
    for file, (_, _, text), (fault, back) in zip(files, documents, judge(documents), strict=True):
        assert fault is None, f"{file}: {fault}"
        assert json.loads(back or "") == json.loads(text), file
