"""A range of commits: the changes of each commit, in every format."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from mcp_bindgen.report.comparison_json import json_schema
from tests.harness.commands import inside
from tests.harness.repositories import PATH, Repo
from tests.harness.small_schemas import record, small

STRING, INTEGER = {"type": "string"}, {"type": "integer"}
SAID = {"description": "How many."}
HOSTILE = "\x1b[2J@everyone | `#12` ::error::x \u202e"


def result(**members: Any) -> Any:
    """Return a schema with one result that has these members, all required."""
    return small(FindBookResult=record(" ".join(members), **members))


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """Return a repository: five commits of a draft and one of another file; one state of the draft is unreadable."""
    repo = Repo(tmp_path_factory.mktemp("range") / "repo")
    repo.commit("the first state", result(pages=INTEGER))
    repo.git("tag", "start")
    repo.commit("only words", result(pages=INTEGER | SAID))
    repo.commit("make pages a string", result(pages=STRING | SAID))
    repo.commit("something else", "{}", "README.json")
    repo.commit("half finished", "{")
    repo.commit(HOSTILE, result(pages=STRING | SAID, title=STRING))
    repo.git("tag", "end")
    return repo


def told(repo: Repo, span: str, *options: str) -> dict[str, Any]:
    """Return the report as JSON."""
    done = inside("diff", repo.at(span), "--format", "json", *options)
    assert (done.returncode, done.stderr) == (0, "")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def subjects(report: dict[str, Any]) -> list[list[str]]:
    return [[commit["subject"] for commit in step["commits"]] for step in report["comparisons"]]


def rules(report: dict[str, Any]) -> list[list[str]]:
    return [[finding["rule"] for finding in step["findings"]] for step in report["comparisons"]]


def test_each_change_is_attributed_to_its_commit(repo: Repo) -> None:
    report = told(repo, "start..end")
    assert subjects(report) == [["make pages a string"], ["half finished", HOSTILE]]
    assert rules(report) == [["type-changed"], ["field-added-required"]]
    assert report["walked"]["commits"] == 4
    assert report["walked"]["same"] == 1
    (skipped,) = report["walked"]["skipped"]
    assert skipped["commit"]["subject"] == "half finished"
    assert skipped["commit"]["date"] == "2026-01-05"
    assert skipped["reason"].startswith("is not JSON")


def test_a_step_equals_the_diff_of_its_two_ends(repo: Repo) -> None:
    report = told(repo, "start..end")
    for step in report["comparisons"]:
        ends = (repo.at(step[side]["revision"].partition("@")[2]) for side in ("old", "new"))
        (alone,) = json.loads(inside("diff", *ends, "--format", "json").stdout)["comparisons"]
        assert {**alone, "commits": None} == {**step, "commits": None}


def test_each_step_starts_at_the_end_of_the_previous_step(repo: Repo) -> None:
    steps = told(repo, "..end")["comparisons"]
    assert all(one["new"]["digest"] == next["old"]["digest"] for one, next in pairwise(steps))


@pytest.mark.full
@pytest.mark.parametrize("span", ["..end", "start..", "start..HEAD", "start~0..main"])
def test_either_end_of_a_range_may_be_omitted(repo: Repo, span: str) -> None:
    assert rules(told(repo, span)) == [["type-changed"], ["field-added-required"]]


def test_a_range_without_a_change_is_no_error(repo: Repo) -> None:
    for span in ("start..start", "start..start~0"):
        report = told(repo, span, "--fail-on", "any")
        assert rules(report) == [[]]
        assert report["walked"]["commits"] == 0
    assert "nothing" in inside("diff", repo.at("start..start"), "--format", "markdown").stdout.lower()


def test_a_range_without_a_readable_schema_is_refused(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    repo.commit("broken", "{")
    assert inside("diff", repo.at("..main"), code=2).stderr.startswith(f"error: {repo.at('..main')}: is not JSON")


@pytest.mark.parametrize(
    ("span", "says"),
    [
        ("start...end", "is no range; write A..B"),
        ("start..nope", "there is no commit 'nope'"),
        ("nope..end", "there is no commit 'nope'"),
    ],
)
def test_invalid_ranges_are_refused(repo: Repo, span: str, says: str) -> None:
    done = inside("diff", repo.at(span))
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


@pytest.mark.full
def test_a_range_supports_selections_and_exit_codes(repo: Repo) -> None:
    assert inside("diff", repo.at("start..end"), "--fail-on", "breaking").returncode == 1
    report = told(repo, "start..end", "--method", "books/find", "--min-severity", "breaking")
    assert rules(report) == [["type-changed"], ["field-added-required"]]
    assert told(repo, "start..end")["comparisons"][0]["findings"][0]["witness"] is not None


def test_a_commit_without_the_schema_is_skipped_and_reported(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    repo.commit("one", result(pages=INTEGER))
    repo.commit("away", None)
    repo.commit("back", result(pages=STRING))
    report = told(repo, "..main")
    assert subjects(report) == [["away", "back"]]
    assert [one["reason"] for one in report["walked"]["skipped"]] == [f"there is no '{PATH}' in that commit"]


def test_a_revert_is_a_change_too(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    for number, kind in enumerate((INTEGER, STRING, INTEGER)):
        repo.commit(f"state {number}", result(pages=kind))
    report = told(repo, "..main")
    assert subjects(report) == [["state 1"], ["state 2"]]
    assert report["comparisons"][1]["new"]["revision"] == f"draft@{repo.head()}"


@pytest.mark.full
def test_a_merge_is_one_step_unless_every_commit_is_requested(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    repo.commit("start", result(pages=INTEGER))
    repo.git("checkout", "--quiet", "-b", "topic")
    repo.commit("break it", result(pages=STRING))
    repo.commit("mend it", result(pages=INTEGER))
    repo.commit("add a title", result(pages=INTEGER, title=STRING))
    repo.git("checkout", "--quiet", "main")
    repo.commit("beside", "{}", "README.json")
    repo.git("merge", "--quiet", "--no-ff", "-m", "merge the topic", "topic")
    assert subjects(told(repo, "..main")) == [["merge the topic"]]
    assert rules(told(repo, "..main")) == [["field-added-required"]]
    assert subjects(told(repo, "..main", "--every-commit")) == [["break it"], ["mend it"], ["add a title"]]


def test_the_json_report_matches_its_schema(repo: Repo) -> None:
    validator = Draft202012Validator(json_schema())
    report = told(repo, "start..end")
    assert validator.is_valid(report)
    report["walked"]["skipped"][0]["commit"]["id"] = 1
    assert not validator.is_valid(report)


def test_the_text_report_names_the_commit_of_each_break(repo: Repo) -> None:
    text = inside("diff", repo.at("start..end")).stdout
    counts = "4 commits touched it, 1 of them changed only words or layout, 1 of them cannot be read"
    assert counts in " ".join(text.split())
    commit = repo.git("rev-list", "-1", "--grep=make pages a string", "HEAD")[:10]
    assert f"{commit}  2026-01-03  1 breaks  make pages a string\n" in text
    assert "is skipped: is not JSON" in text
    assert "type-changed" in text


@pytest.mark.full
@pytest.mark.parametrize("format", ["text", "markdown", "html", "github"])
def test_commit_subjects_are_escaped_in_every_format(repo: Repo, format: str) -> None:
    text = inside("diff", repo.at("start..end"), "--format", format).stdout
    assert "make pages a string" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert ("everyone" in text) == (format != "github"), "more than nine notices are counted"
    match format:
        case "markdown":
            lines = [line for line in text.splitlines() if "@everyone" in line]
            assert len(lines) == 2
            for line in lines:
                assert line.partition("@everyone")[0].count("``") == 1, "inside of code, where nobody is mentioned"
            (row,) = [line for line in lines if line.startswith("|")]
            assert row.replace("\\|", "").count("|") == 5
        case "github":
            assert not [line for line in text.splitlines() if not line.startswith("::")]
        case "html":
            assert "<script>x" not in text
        case _:
            pass
