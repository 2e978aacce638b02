"""Vectors: their verdicts in view of a validator and the published schemas, their coverage, bytes and files."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from pydantic import TypeAdapter, ValidationError

from mcp_bindgen.emit.python import naming
from mcp_bindgen.spec import Store, extend
from mcp_bindgen.spec.document import read
from mcp_bindgen.vectors import VectorFile, json_schema, read_files, vector_files
from mcp_bindgen.vectors.facts import read_facts
from mcp_bindgen.vectors.format import as_text
from mcp_bindgen.vectors.run import disagreement
from mcp_bindgen.vectors.testee import Answer
from tests.harness.commands import UPSTREAM, inside, snapshot
from tests.harness.effort import cases
from tests.harness.hostile_schemas import hostile_store

STORE = Store()
NAMES = [*STORE.pins, *(f"{pin.id}@{pin.name}" for pin in STORE.extension_pins)]
QUICK = ("2024-11-05", "io.modelcontextprotocol/skills@2026-07-28")
GENERATED = pytest.mark.parametrize("name", cases(NAMES, quick=QUICK))


@cache
def files(name: str) -> list[VectorFile]:
    return list(vector_files(STORE, [name]))


@cache
def effective(name: str) -> Any:
    pin = STORE.any_pin(name)
    core = STORE.effective(STORE.core(pin) if pin.id else pin.name)
    return extend(core, STORE.extension_schema(pin, core)).definitions if pin.id else core.definitions


def oracle(definitions: Any, name: str) -> Any:
    return jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions})


@pytest.mark.full
@GENERATED
def test_verdicts_agree_with_a_validator_or_state_their_basis(name: str) -> None:
    for file in files(name):
        judge = oracle(effective(name), file.definition)
        for vector in file.vectors:
            assert vector.schema == (vector.rule != "lone-surrogate" and judge.is_valid(json.loads(vector.sent)))
            differs = vector.verdict != ("valid" if vector.schema else "invalid")
            assert not differs or vector.rule in ("null", "format") or (vector.basis and vector.spec), vector
            assert not differs or vector.verdict == "tolerated" or vector.schema, vector


def test_the_oldest_revision_has_its_own_page_of_messages() -> None:
    pages = {vector.spec for file in files("2024-11-05") for vector in file.vectors if vector.basis == "prose"}
    assert {page for page, _ in pages} == {"basic/messages", "client/roots"}


@pytest.mark.skipif(not UPSTREAM.exists(), reason="the upstream files are not here")
@pytest.mark.parametrize("name", cases(list(STORE.pins), quick=QUICK))
def test_published_verdicts_agree_with_the_upstream_schema(name: str) -> None:
    upstream = read(UPSTREAM / name / "schema.json")[0]["$defs"]
    for file in files(name):
        judge = oracle(upstream, file.definition)
        for vector in file.vectors:
            accepted = vector.rule != "lone-surrogate" and judge.is_valid(json.loads(vector.sent))
            assert accepted == (vector.schema if vector.published is None else vector.published), vector


@GENERATED
def test_generated_bindings_agree_with_the_vectors(name: str) -> None:
    for file in files(name):
        if (types := bindings(file.revision, file.extension)) is None:
            continue
        adapter: TypeAdapter[Any] = TypeAdapter(getattr(types, file.definition))
        for vector in file.vectors:
            if vector.verdict != "invalid" or not vector.schema:  # a type follows the schema, not the text
                assert disagreement(vector, answer(adapter, vector.sent)) is None, vector


def answer(adapter: TypeAdapter[Any], text: str) -> Answer:
    try:
        return Answer("accepted", adapter.dump_json(adapter.validate_json(text)).decode())
    except ValidationError as error:
        return Answer("rejected", str(error))


@cache
def bindings(revision: str, extension: str) -> Any:
    """Return the module of types, or None for an extension without bindings."""
    package = f"mcp_bindgen.{naming.package(revision)}"
    if extension:
        pin = STORE.extension(extension)
        if pin != STORE.extension(pin.id):  # only the newest version has bindings
            return None
        package += f".extensions.{STORE.module(pin)}"
    return import_module(f"{package}.types")


@GENERATED
def test_vector_files_conform_to_their_json_schema(name: str) -> None:
    schema = jsonschema_rs.validator_for(dict(json_schema()))
    for file in files(name):
        schema.validate(json.loads(as_text(file)))
        assert len({vector.id for vector in file.vectors}) == len({vector.sent for vector in file.vectors})
        assert [vector.id for vector in file.vectors if "#" not in vector.id or vector.reason == ""] == []


@GENERATED
def test_vectors_cover_each_member_as_present_absent_and_damaged(name: str) -> None:
    definitions, always = effective(name), read_facts(STORE.root).always
    for file in files(name):
        schema = definitions[file.definition]
        documents: dict[str, list[Any]] = {"valid": [], "invalid": [], "tolerated": []}
        for vector in file.vectors:
            documents[vector.verdict].append(json.loads(vector.sent))
        for member, constraint in schema.get("properties", {}).items():
            objects = [one for one in documents["valid"] if isinstance(one, dict)]
            assert any(member in one for one in objects), (file.name, member)
            if member not in schema.get("required", ()) and f"{file.definition}.{member}" not in always:
                assert any(member not in one for one in objects), (file.name, member)
            for value in constraint.get("enum", ()):
                assert any(one.get(member) == value for one in objects), (file.name, member, value)
            if constraint not in ({}, True) and "$ref" not in constraint:
                damaged = [one for one in documents["invalid"] if isinstance(one, dict) and member in one]
                assert damaged, (file.name, member)


def test_all_documents_have_the_members_that_a_text_requires() -> None:
    for key, example in read_facts(STORE.root).always.items():
        definition, _, member = key.partition(".")
        (file,) = (one for one in files("2026-07-28") if one.definition == definition)
        vectors = [one for one in file.vectors if one.verdict != "invalid" and one.rule != "null"]
        assert {json.loads(one.sent).get(member) for one in vectors} == {example}
        assert {"minimal", "full", "unknown"} <= {one.rule for one in vectors}
        assert f"present#/{member}" not in {one.id for one in file.vectors}, "it is never absent"


def test_only_results_that_are_complete_may_lack_their_kind() -> None:
    vectors = {(file.definition, one.id): one.verdict for file in files("2026-07-28") for one in file.vectors}
    absent = {name: verdict for (name, id), verdict in vectors.items() if id == "required#/resultType"}
    assert absent.pop("InputRequiredResult") == "invalid"
    assert {*absent.values()} == {"tolerated"}
    assert vectors["ServerResult", "required#/resultType@InputRequiredResult"] == "tolerated", "it reads as a Result"
    (task,) = (one for one in files("tasks@2026-07-28") if one.definition == "CreateTaskResult")
    assert [one.verdict for one in task.vectors if one.id == "required#/resultType"] == ["invalid"]


@pytest.mark.full
def test_the_suite_has_the_documented_size() -> None:
    every = [vector for name in NAMES for file in files(name) for vector in file.vectors]
    verdicts = Counter(vector.verdict for vector in every)
    assert len(every) >= 10_000
    assert verdicts["invalid"] >= len(every) / 2
    assert verdicts["tolerated"] <= len(every) / 20
    assert sum(len(as_text(file)) for name in NAMES for file in files(name)) <= 12e6
    facts = read_facts(STORE.root)
    assert {one.id for one in facts.document} <= {vector.id for vector in every}
    assert {one.reason for one in facts.override} <= {vector.reason for vector in every}
    assert set(facts.tolerated) <= {vector.rule for vector in every if vector.verdict == "tolerated"}


def test_the_command_writes_the_same_files_each_time(tmp_path: Path) -> None:
    assert inside("vectors", "skills", "--out", tmp_path / "a").returncode == 0
    (tmp_path / "b" / "2024-11-05").mkdir(parents=True)
    (tmp_path / "b" / "2024-11-05" / "Gone.json").write_text('{\n "format": 1}')
    (tmp_path / "b" / "2024-11-05" / "mine.json").write_text("{}")
    assert inside("vectors", "skills", "--out", tmp_path / "b").returncode == 0
    first, second = snapshot(tmp_path / "a"), snapshot(tmp_path / "b")
    assert second.pop("2024-11-05/mine.json") == b"{}"
    assert first == second
    assert [file.definition for file in read_files(tmp_path / "a")] == [file.definition for file in files(QUICK[1])]


def test_bad_usage_is_reported() -> None:
    for arguments, message in [
        (("2031-01-01", "--out", "x"), "there is no revision '2031-01-01'"),
        ((), "Usage"),
        (("2025-11-25",), "give either --out or --json-schema"),
        (("run", "--testee", "no-such-program", "--revision", "skills"), "the testee cannot be started"),
        (("run", "--testee", "true", "--vectors", "none"), "holds no vectors"),
        (("run", "--testee", "true", "--revision", "2031-01-01"), "there is no revision '2031-01-01'"),
        (("run", "--testee", "true", "--update"), "--update needs a file"),
    ]:
        done = inside("vectors", *arguments)
        assert message in done.stdout + done.stderr
        assert done.returncode == 2 or not arguments


def test_the_name_of_a_definition_leads_to_no_other_folder(tmp_path: Path) -> None:
    names = [file.name for file in vector_files(hostile_store(tmp_path), ["draft"])]
    assert "draft/..%2F..%2Fx" in names
    assert [name for name in names if name.count("/") != 1 or ".." in name.split("/")] == []
