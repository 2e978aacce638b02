"""The runner: comparison of documents, disagreements, testees that misbehave, lists and reports; the matrix."""

from __future__ import annotations

import json
import shlex
import sys
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import jsonschema_rs
import pytest
from hypothesis import given

from mcp_bindgen.spec import Store
from mcp_bindgen.vectors import Vector, VectorFile, vector_files
from mcp_bindgen.vectors.format import as_text
from mcp_bindgen.vectors.run import changes, disagreement, parse
from mcp_bindgen.vectors.testee import Answer, Testee
from tests.harness.commands import Done, inside
from tests.harness.effort import cases
from tests.harness.json_instances import JSON
from tests.vectors import matrix
from tests.vectors.testees import PROGRAMS, Program

TESTEE = """
import json, sys, time
for line in sys.stdin:
    message = json.loads(line)
    reply = {"seq": message.get("seq")}
    text = message.get("text", "")
    if message["cmd"] == "start":
        reply = {"protocol": 1, "name": "scripted", "version": "1", "language": "python", "revisions": []}
    elif message["cmd"] == "stop":
        break
    elif message["definition"] == "Root":
        BEHAVIOUR
    else:
        reply["unsupported"] = "only Root"
    print(json.dumps(reply), flush=True)
"""
ECHO = 'reply["accepted"] = text'


@cache
def files(revision: str) -> list[VectorFile]:
    return list(vector_files(Store(), [revision]))


def run(folder: Path, behaviour: str, *arguments: object, start: tuple[str, str] = ("", "")) -> Done:
    """Run the vectors of 2024-11-05 on a scripted testee; `start` replaces text in its first message."""
    script = folder / "testee.py"
    script.write_text(TESTEE.replace("BEHAVIOUR", behaviour).replace(*start))
    vectors = folder / "vectors"
    if not vectors.exists():
        (vectors / "2024-11-05").mkdir(parents=True)
        (root,) = (file for file in files("2024-11-05") if file.definition == "Root")
        (vectors / "2024-11-05" / "Root.json").write_text(as_text(root))
    command = shlex.join([sys.executable, "-S", "-E", str(script)])
    return inside("vectors", "run", "--testee", command, "--vectors", vectors, *arguments)


def test_differences_of_documents_have_a_kind_and_a_pointer() -> None:
    for read, wrote, found in [
        ('{"a":1,"b":[1.0]}', '{"b":[1],"a":1.0}', []),
        ('{"a":9007199254740993}', '{"a":9007199254740992}', [("changed", "/a")]),
        ('{"a":1}', '{"a":true}', [("changed", "/a")]),
        ('{"a":{"b":1},"c":null}', '{"a":{}}', [("lost", "/a/b"), ("lost-null", "/c")]),
        ("[{}]", '[{"x/y":1}]', [("added", "/0/x~1y")]),
        ("[1,2]", "[1]", [("lost", "")]),
        ("{}", "[]", [("changed", "")]),
    ]:
        assert list(changes(parse(read), parse(wrote))) == found


@given(JSON, JSON)
def test_equality_of_documents_agrees_with_json_schema_const(one: object, other: object) -> None:
    for left, right in ((one, other), (one, one)):
        is_equal = jsonschema_rs.validator_for({"const": left}).is_valid(right)
        assert (not any(changes(parse(json.dumps(left)), parse(json.dumps(right))))) == is_equal


READ = Answer("accepted", '{"a":null}')
VALID = Vector("x#", "valid", True, "/a", "x", "Why.", document={"a": None}, reads_as="Root")
INVALID = Vector("x#", "invalid", False, "/a", "x", "Why.", document={})
TOLERATED = Vector("x#", "tolerated", False, "/a", "x", "Why.", document={"a": None}, wrote=({},))


def test_disagreements_are_classified() -> None:
    for vector, answer, found in [
        *((VALID, one, None) for one in (READ, Answer("accepted", READ.text, "Root"), Answer("unsupported"))),
        (VALID, Answer("accepted", '{"a":null}', "Tool"), ("misread", "/a")),
        (VALID, Answer("accepted", "{}"), ("lost-null", "/a")),
        (VALID, Answer("accepted", "{"), ("not-json", "/a")),
        (VALID, Answer("rejected"), ("false-reject", "/a")),
        (INVALID, Answer("accepted", "{}"), ("false-accept", "/a")),
        (INVALID, Answer("rejected"), None),
        (INVALID, Answer("crash"), ("crash", "/a")),
        *((TOLERATED, one, None) for one in (READ, Answer("accepted", "{}"), Answer("rejected"))),
        (TOLERATED, Answer("accepted", '{"b":1}'), ("added", "/b")),
        (TOLERATED, Answer("timeout"), ("timeout", "/a")),
    ]:
        assert disagreement(vector, answer) == found


MISBEHAVIOUR = [
    (ECHO, {"false-accept"}),
    ('reply["rejected"] = "no"', {"false-reject"}),
    ('reply["error"] = "oops"', {"error"}),
    ('reply = {"seq": 0, "accepted": text}', {"error"}),
    ('reply["other"] = text', {"error"}),
    ('reply["rejected" if "1" in text else "accepted"] = text\n        if "true" in text: sys.exit(3)', {"crash"}),
    ('reply["accepted"] = text\n        if "[]" in text: time.sleep(5)', {"timeout", "false-accept"}),
    ('print("[" * 100_000)\n        reply["rejected"] = ""', {"error"}),
    ('while True: sys.stdout.write("x" * 1_000_000)', {"error"}),
    ('print("noise")\n        reply["rejected"] = ""', {"error"}),
]


@pytest.mark.full
@pytest.mark.parametrize(("behaviour", "kinds"), cases(MISBEHAVIOUR, quick=MISBEHAVIOUR[3:5]))
def test_misbehaving_testees_are_reported(tmp_path: Path, behaviour: str, kinds: set[str]) -> None:
    done = run(tmp_path, behaviour, "--format", "json", "--timeout", "0.3")
    assert done.returncode == 1, done.stderr
    record = json.loads(done.stdout)
    assert kinds <= {one["kind"] for one in record["disagreements"]}
    assert record["implementation"]["name"] == "scripted"
    assert record["judged"]["2024-11-05"] > 20


def test_expected_disagreements_pass_and_stale_expectations_fail(tmp_path: Path) -> None:
    known = tmp_path / "known.toml"
    assert run(tmp_path, ECHO, "--expected", known, "--update").returncode == 0
    done = run(tmp_path, ECHO, "--expected", known)
    assert (done.returncode, "0 disagreements" in done.stdout) == (0, True)
    done = run(tmp_path, 'reply["rejected" if "1" in text else "accepted"] = text', "--expected", known)
    assert (done.returncode, "No disagreement is left for the expected" in done.stdout) == (1, True)
    known.write_text('[[expected]]\nkind = "false-accept"\nvectors = ["*"]\nreason = "an echo"\n')
    assert run(tmp_path, ECHO, "--expected", known).returncode == 0
    known.write_text('[[expected]]\nkind = "false-reject"\nvectors = ["*"]\nreason = "another kind"\n')
    done = run(tmp_path, ECHO, "--expected", known)
    assert (done.returncode, "0 disagreements" in done.stdout) == (1, False)
    for wrong in ('[[expected]]\nkind = "false-accept"\nvectors = "*"\n', "expected = 5\n"):
        known.write_text(wrong)
        done = run(tmp_path, ECHO, "--expected", known)
        assert (done.returncode, f"error: {known}#/expected" in done.stderr) == (2, True)


def test_a_testee_without_a_list_of_revisions_is_started(tmp_path: Path) -> None:
    """A nil slice of Go becomes null."""
    done = run(tmp_path, ECHO, "--format", "json", start=('"revisions": []', '"revisions": None'))
    assert json.loads(done.stdout)["implementation"]["revisions"] == []


def test_disagreements_are_reported_as_text_markdown_and_junit(tmp_path: Path) -> None:
    text = run(tmp_path, ECHO).stdout
    assert "scripted 1" in text
    assert "accepts an invalid document at uri (required)" in text
    assert "2024-11-05/Root:required#/uri" in run(tmp_path, ECHO, "--format", "markdown").stdout.replace("\\", "")
    out = tmp_path / "report.xml"
    run(tmp_path, ECHO, "--format", "junit", "--out", out)
    suite = ElementTree.parse(out).getroot()[0]
    assert int(suite.attrib["failures"]) == len(suite) > 3


def test_documents_forbidden_only_by_prose_count_on_request(tmp_path: Path) -> None:
    options = (("--format", "json"), ("--format", "json", "--prose"))
    plain, prose = (json.loads(run(tmp_path, ECHO, *one).stdout)["disagreements"] for one in options)
    assert {one["vector"] for one in prose} - {one["vector"] for one in plain} == {"2024-11-05/Root:root-scheme#/uri"}


@pytest.mark.parametrize("program", cases(PROGRAMS, quick=()), ids=lambda program: program.key)
def test_the_matrix_is_up_to_date(program: Program) -> None:
    """Check one revision, which nearly all programs support; `python -m tests.vectors.matrix` writes all rows."""
    revision = "2025-06-18"
    found = matrix.run_program(program, files(revision))
    (row,) = matrix.revision_rows(program, found)
    page = matrix.PAGE.read_text("utf-8")
    about = found.implementation
    if matrix.line((program.key, f"`{about.name}`", about.version)).removesuffix(" |") in page:  # else another version
        assert matrix.line(row) in page, "python -m tests.vectors.matrix"


HELLO = "import time; print('{\"protocol\": 1}', flush=True)\n"


def deaf_program(folder: Path, program: str) -> str:
    script = folder / "deaf.py"
    script.write_text(HELLO + program + "\ntime.sleep(600)")
    return shlex.join([sys.executable, "-S", "-E", str(script)])


def test_a_testee_that_does_not_read_its_input_times_out(tmp_path: Path) -> None:
    with Testee(deaf_program(tmp_path, ""), timeout=0.3) as testee:
        for size in (10, 1_000_000, 10):  # a pipe holds less than a million bytes
            assert testee.parse({"text": "x" * size}).status == "timeout"


@pytest.mark.full
def test_a_testee_that_answers_without_reading_ends_after_the_last_vector(tmp_path: Path) -> None:
    replies = 'for seq in range(1, 30): print(\'{"seq": %d, "rejected": ""}\' % seq, flush=True)'
    with Testee(deaf_program(tmp_path, replies), timeout=5) as testee:
        assert {testee.parse({"text": "x" * 100_000}).status for _ in range(29)} == {"rejected"}
