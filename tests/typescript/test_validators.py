"""Validators accept exactly the documents that the schema accepts, and lose nothing."""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.harness.commands import UPSTREAM
from tests.harness.effort import cases, examples
from tests.harness.json_instances import Instances, odd_names, of_definitions
from tests.typescript.packages import DRAFTS, REVISIONS, Document, definitions, judge

DOCUMENTS = int(os.environ.get("TYPESCRIPT_DOCUMENTS", examples(100, 1000)))
EXAMPLES = Path(os.environ.get("MCP_EXAMPLES") or UPSTREAM / "2026-07-28" / "examples")
"""Folder of the examples in the specification repository; the project must not contain them."""


@cache
def anything(revision: str) -> Instances:
    """Return a generator of valid and invalid values for the definitions of a revision."""
    return Instances({"$defs": definitions(revision)}, revision)


def random_documents(revision: str, count: int) -> Iterator[Document]:
    """Yield valid and damaged documents: some of each definition, and `count` odd ones of random definitions."""
    schemas, near = definitions(revision), anything(revision)
    for name in schemas:
        for one in [*near.valid(4, 20, name), *near.invalid(12, 40, name)]:
            yield revision, name, json.dumps(one)
    dice = random.Random(revision)
    odd = of_definitions(schemas, dice, names=odd_names("constructor", "toString", "__proto__", "x"))
    for _ in range(count):
        name = dice.choice(sorted(schemas))
        document = odd.of(name)
        yield (
            revision,
            name,
            json.dumps(odd.mutant(document, allows_infinite=True) if dice.random() < 0.5 else document),
        )


def is_valid(document: Document) -> bool:
    """Return the verdict of the schema. NaN and infinite numbers are no JSON."""
    revision, name, text = document
    value = json.loads(text)
    return is_json(value) and bool(anything(revision).validator(name).is_valid(value))


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
    documents = list(random_documents(revision, DOCUMENTS))
    verdicts = judge(documents)
    judged = zip(documents, verdicts, strict=True)
    wrong = [one for one, (fault, _) in judged if (fault is None) != is_valid(one)]
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
