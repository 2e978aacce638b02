"""Published files, compared with our revisions: known mistakes are corrected, and descriptions are not compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from mcp_bindgen.spec import Store
from mcp_bindgen.spec.keywords import Schema, rebuild
from tests.harness.commands import Done, inside, python, save, shuffled
from tests.harness.effort import cases

STORE = Store()
REVISIONS = list(STORE.pins)
PUBLISHED = cases(REVISIONS, quick=("2025-06-18", REVISIONS[-1]))


def told(schema: Schema, words: str) -> Schema:
    """Return a schema with descriptions everywhere."""
    return {"description": f"What {words} says.", **rebuild(schema, lambda child, _: told(child, words))}


def published(path: Path, revision: str, words: str = "upstream", **changes: Any) -> Path:
    """Return a revision as upstream publishes it: descriptions, another order, and an old dialect until 2025-06-18."""
    definitions = {**STORE.structure(revision)["$defs"], **changes}
    told_ones = shuffled({name: told(schema, words) for name, schema in definitions.items()}, 0)
    text = json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": told_ones})
    if revision <= "2025-06-18":
        text = text.replace('"$defs"', '"definitions"').replace("#/$defs/", "#/definitions/")
    return save(path, json.loads(text))


def corrected(done: Done) -> list[str]:
    """Return the pointers of corrections in the output of a command, which must contain nothing else."""
    lines = done.stderr.splitlines()
    assert all(line.startswith("corrected: ") for line in lines)
    return [line.partition("#")[2].partition(": ")[0] for line in lines]


def known_mistakes(revision: str) -> list[str]:
    return [patch.pointer for patch in STORE.errata if revision in patch.revisions]


@pytest.mark.full
@pytest.mark.parametrize("revision", PUBLISHED)
def test_a_revision_and_its_own_published_file_do_not_differ(revision: str, tmp_path: Path) -> None:
    file = published(tmp_path / "draft.json", revision)
    for pair in ((revision, file), (file, revision)):
        done = inside("diff", *pair, "--fail-on", "any", code=0)
        assert "Nothing changed." in done.stdout
        assert "are not compared" in done.stdout
        assert done.stderr == ""


@pytest.mark.full
@pytest.mark.parametrize("revision", PUBLISHED)
def test_only_the_change_in_a_published_file_is_found(revision: str, tmp_path: Path) -> None:
    tool = STORE.structure(revision)["$defs"]["Tool"]
    tool["properties"]["colour"] = {"type": "string"}
    done = inside("diff", revision, published(tmp_path / "draft.json", revision, Tool=tool), "--format", "json")
    (comparison,) = json.loads(done.stdout)["comparisons"]
    found = [(one["rule"], one["subject"]) for one in comparison["findings"]]
    assert found == [("field-added-optional", "Tool.colour")]


@pytest.mark.full
def test_a_mistake_that_upstream_corrected_is_not_reported(tmp_path: Path) -> None:
    effective = STORE.effective("2026-07-28").definitions
    file = published(tmp_path / "draft.json", "2026-07-28", ElicitResult=effective["ElicitResult"])
    done = inside("diff", "2026-07-28", file, "--fail-on", "any", code=0)
    assert done.stderr == ""


@pytest.mark.full
@pytest.mark.parametrize("subject", cases(("ElicitResult.content", "Root", "tools/call", "-32002"), quick=["Root"]))
def test_a_published_file_adds_nothing_to_a_history(subject: str, tmp_path: Path) -> None:
    file = published(tmp_path / "draft.json", REVISIONS[-1])
    ours, more = inside("history", subject), inside("history", subject, "--schema", file)
    assert more.stdout == ours.stdout
    assert ours.stderr == more.stderr == ""


@pytest.mark.full
def test_the_json_of_a_history_lists_corrections(tmp_path: Path) -> None:
    file = published(tmp_path / "draft.json", REVISIONS[-1])
    record = json.loads(inside("history", "Root", "--schema", file, "--json").stdout)
    assert [one["pointer"] for one in record["corrections"]] == known_mistakes(REVISIONS[-1])
    assert {one["file"] for one in record["corrections"]} == {str(file)}


@pytest.mark.full
def test_bindings_of_a_published_file_include_our_corrections(tmp_path: Path) -> None:
    file = published(tmp_path / "draft.json", "2026-07-28")
    names = ("--revision", "draft", "--package", "acme_draft", "--only", "elicitation")
    done = inside("generate", "--schema", file, "--out", tmp_path, *names, code=0)
    assert corrected(done) == known_mistakes("2026-07-28")
    again = inside("generate", "--schema", file, "--out", tmp_path, *names, code=0)
    assert again.stderr == ""  # nothing was generated
    code = "from acme_draft.types import ElicitResult as R; print(R(action='accept', content={'a': 1.5}).content)"
    assert python(code, tmp_path) == "{'a': 1.5}\n"


@pytest.mark.full
def test_descriptions_of_two_files_are_compared(tmp_path: Path) -> None:
    files = [published(tmp_path / f"{words}.json", "2026-07-28", words) for words in ("old", "new")]
    (comparison,) = json.loads(inside("diff", *files, "--format", "json").stdout)["comparisons"]
    assert comparison["wordsCompared"]
    assert {one["rule"] for one in comparison["findings"]} == {"description-changed"}
    assert sum(len(one["places"]) or 1 for one in comparison["findings"]) > 400
    assert "not compared" not in inside("diff", *files).stdout


@pytest.mark.full
@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_a_report_notes_once_that_descriptions_are_not_compared(form: str, tmp_path: Path) -> None:
    report = inside("diff", "2025-06-18", published(tmp_path / "draft.json", "2025-11-25"), "--format", form).stdout
    assert " ".join(report.split()).count("Descriptions and deprecations are not compared") == 1
    assert "not compared" not in inside("diff", "2025-06-18", "2025-11-25", "--format", form).stdout


@pytest.mark.full
def test_the_json_report_lists_corrections_and_matches_its_schema(tmp_path: Path) -> None:
    file = published(tmp_path / "draft.json", "2025-11-25")
    report = json.loads(inside("diff", "2025-06-18", file, "--format", "json").stdout)
    jsonschema_rs.validator_for(json.loads(inside("diff", "--json-schema").stdout)).validate(report)
    (comparison,) = report["comparisons"]
    assert not comparison["wordsCompared"]
    assert comparison["old"]["corrections"] == []
    assert [one["pointer"] for one in comparison["new"]["corrections"]] == known_mistakes("2025-11-25")
