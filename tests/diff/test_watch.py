"""`watch` says what changed in a schema file since the last look, once."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from mcp_bindgen.diff.reports.json import json_schema
from mcp_bindgen.diff.watch import State
from mcp_bindgen.spec import BadInput, sources
from tests.support.commands import COMMAND, Done, bindgen, inside, save
from tests.support.file_server import serving
from tests.support.repositories import Repo
from tests.support.small_schemas import record, small

OLD = small()
NEW = small(FindBookResult=record("pages", pages={"type": "string"}))
WORDS = small(FindBookResult=record("pages", pages={"type": "integer", "description": "How many."}))
MORE = small(FindBookResult=record("pages", pages={"type": "integer"}, title={"type": "string"}))


class Watched:
    """A draft in a folder of its own, and the state of looking at it."""

    def __init__(self, folder: Path) -> None:
        self.draft, self.state = folder / "draft.json", folder / "state.json"

    def becomes(self, schema: Any) -> None:
        save(self.draft, schema)

    def look(self, *options: object) -> Done:
        return inside("watch", self.draft, "--state", self.state, *options)


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    """A draft that was seen once."""
    one = Watched(tmp_path)
    one.becomes(OLD)
    done = one.look()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{one.draft}: first look at draft: 4 definitions, 1 method\n"
    return one


def test_nothing_changed(watched: Watched) -> None:
    done = watched.look()
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r".*draft\.json: nothing changed since \d{4}-\d\d-\d\d\n", done.stdout)


def test_a_change_is_told_once(watched: Watched) -> None:
    watched.becomes(NEW)
    done = watched.look()
    assert (done.returncode, done.stderr) == (1, "")
    assert re.search(r"^MCP draft of \d{4}-\d\d-\d\d -> draft: 1 change$", done.stdout, re.MULTILINE)
    assert "type-changed" in done.stdout
    assert watched.look().returncode == 0


def test_what_is_kept_is_told_again(watched: Watched) -> None:
    before = watched.state.read_bytes()
    watched.becomes(NEW)
    assert watched.look("--keep").returncode == 1
    assert watched.state.read_bytes() == before
    assert watched.look("--keep").returncode == 1


def test_a_first_look_that_is_not_remembered(tmp_path: Path) -> None:
    one = Watched(tmp_path)
    one.becomes(OLD)
    assert "first look" in one.look("--keep").stdout
    assert not one.state.exists()


@pytest.mark.parametrize(
    ("schema", "fails"),
    [(NEW, {"any", "risky", "breaking"}), (MORE, {"any"}), (WORDS, {"any"}), (OLD, set[str]())],
    ids=["breaking", "harmless", "words", "nothing"],
)
def test_what_fails(schema: Any, fails: set[str], watched: Watched) -> None:
    watched.becomes(schema)
    levels = ("never", "any", "risky", "breaking")
    assert {level for level in levels if watched.look("--keep", "--fail-on", level).returncode == 1} == fails
    assert watched.look("--keep").returncode == ("any" in fails)


def test_a_draft_that_cannot_be_read_forgets_nothing(watched: Watched) -> None:
    before = watched.state.read_bytes()
    watched.draft.write_text("{")
    done = watched.look()
    assert (done.returncode, done.stdout) == (2, "")
    assert watched.state.read_bytes() == before
    watched.becomes(NEW)
    assert watched.look().returncode == 1


def test_a_report_that_cannot_be_written_is_not_remembered(watched: Watched, tmp_path: Path) -> None:
    before = watched.state.read_bytes()
    watched.becomes(NEW)
    assert watched.look("--output", tmp_path / "gone" / "report.md").returncode == 2
    if Path("/dev/full").exists():
        with Path("/dev/full").open("w") as full:
            command = [str(COMMAND), "watch", str(watched.draft), "--state", str(watched.state)]
            assert subprocess.run(command, stdout=full, stderr=subprocess.DEVNULL).returncode == 2
    assert watched.state.read_bytes() == before


def test_the_report_in_a_file(watched: Watched, tmp_path: Path) -> None:
    watched.becomes(NEW)
    done = watched.look("--format", "markdown", "--output", tmp_path / "issue.md")
    assert (done.returncode, done.stdout) == (1, "")
    title, _, *body = (tmp_path / "issue.md").read_text("utf-8").splitlines()
    assert re.fullmatch(r"# MCP draft of \d{4}-\d\d-\d\d → draft", title)
    assert body[0].startswith("- **Old client, new server: ")
    assert "## Breaking" in body
    assert re.fullmatch(r"`.*draft\.json`, last looked at on \d{4}-\d\d-\d\d\.", body[-1])


def test_the_report_for_programs(watched: Watched) -> None:
    same = json.loads(watched.look("--format", "json").stdout)
    watched.becomes(NEW)
    changed = json.loads(watched.look("--format", "json").stdout)
    watched.state.unlink()
    first = json.loads(watched.look("--format", "json").stdout)
    assert [one["changed"] for one in (first, same, changed)] == [False, False, True]
    assert first["report"] is first["lastLook"] is None
    validator = Draft202012Validator(json_schema())
    for one in (same, changed):
        assert validator.is_valid(one["report"])
        assert one["source"] == str(watched.draft)
    (finding,) = changed["report"]["comparisons"][0]["findings"]
    assert finding["rule"] == "type-changed"
    assert finding["witness"] is not None


def test_annotations_of_a_workflow(watched: Watched) -> None:
    assert watched.look("--format", "github").stdout.startswith("::notice title=mcp-bindgen watch::")
    watched.becomes(NEW)
    assert "\n::error title=MCP draft of " in watched.look("--format", "github").stdout


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"form": 2}',
        b'{"form": 1, "day": "2026-01-01", "revision": 1, "schema": {}}',
        b'{"form": 1, "day": "2026-01-01", "revision": "x", "schema": {}}',
        b'{"form": 1, "day": "2026-01-01", "revision": "x", "commit": {"id": "--all"}, "schema": {}}',
        b'{"form": 1, "day": "x", "revision": "x", "commit": {"id": "-x", "date": "", "subject": ""}, "schema": {}}',
    ],
)
def test_a_damaged_state_is_named_and_kept(content: bytes, watched: Watched) -> None:
    watched.state.write_bytes(content)
    done = watched.look()
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"error: {re.escape(str(watched.state))}[^\n]+\n", done.stderr)
    assert watched.state.read_bytes() == content


def test_a_state_that_is_a_folder(watched: Watched) -> None:
    watched.state.unlink()
    watched.state.mkdir()
    done = watched.look()
    assert done.returncode == 2
    assert "give another --state" in done.stderr


def test_without_a_state_file_the_folder_of_the_user_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "home"
    for name in ("HOME", "XDG_STATE_HOME", "USERPROFILE", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.chdir(tmp_path)
    one, two = save(tmp_path / "one.json", OLD), save(tmp_path / "two.json", OLD)
    for path in (one, two):
        assert "first look" in inside("watch", path).stdout
    assert inside("watch", "one.json").stdout.startswith("one.json: nothing changed since ")
    save(two, NEW)
    assert [inside("watch", path).returncode for path in (one, two)] == [0, 1]
    assert len(list(folder.rglob("*.json"))) == 2


def test_a_branch_that_moves(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    first = repo.commit("first", OLD)
    look = ("watch", repo.at("main"), "--state", tmp_path / "state.json")
    assert f"first look at draft@{first}: " in inside(*look).stdout
    repo.commit("beside", "{}", "README.json")
    assert inside(*look).returncode == 0
    repo.commit("add a title", MORE)
    last = repo.commit("pages are words now", NEW)
    done = inside(*look, "--keep")
    assert done.returncode == 1
    assert "add a title" in done.stdout
    assert f"{last}  2026-01-04  pages are words now\n" in done.stdout
    assert re.search(rf"^MCP draft@\w+ -> draft@{last}: ", done.stdout, re.MULTILINE)
    repo.git("checkout", "--quiet", "--orphan", "other")
    repo.git("branch", "--delete", "--force", "main")
    repo.git("checkout", "--quiet", "-b", "main")
    again = repo.commit("rewritten", NEW)
    done = inside(*look)
    assert done.returncode == 1
    assert f"-> draft@{again}: " in done.stdout


def test_an_address(tmp_path: Path) -> None:
    with serving() as server:
        look = ("watch", server.file("/draft/schema.json", json.dumps(OLD).encode()), "--state", tmp_path / "s.json")
        assert inside(*look).returncode == 0
        server.file("/draft/schema.json", json.dumps(NEW).encode())
        assert inside(*look).returncode == 1
        server.file("/draft/schema.json", b"", 500)
        assert inside(*look).returncode == 2
        server.file("/draft/schema.json", json.dumps(NEW).encode())
        assert inside(*look).returncode == 0


def test_what_cannot_be_watched() -> None:
    assert "'2025-11-25' is a revision of ours, which does not change" in inside("watch", "2025-11-25").stderr
    assert "give --state FILE" in inside("watch", "-").stderr
    assert "names a range of commits" in inside("watch", "git:.@a..b:x").stderr


def test_two_looks_at_once_lose_nothing(watched: Watched) -> None:
    source = sources.read(watched.draft)
    one, two = State(watched.state), State(watched.state)
    one.remember(source, date(2030, 1, 1))
    with pytest.raises(BadInput, match="was changed meanwhile"):
        two.remember(source, date(2030, 1, 2))


def test_in_a_pipe_it_is_quiet(watched: Watched) -> None:
    watched.becomes(NEW)
    done = bindgen("watch", watched.draft, "--state", watched.state)
    assert (done.returncode, done.stderr) == (1, "")
    assert "\x1b" not in done.stdout
