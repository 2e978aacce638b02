"""The real command: its standard output, standard error and exit codes."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen.emit import MARK
from mcp_bindgen.spec import Store
from tests.harness.commands import (
    ROOT,
    Done,
    answered,
    bindgen,
    complaint,
    execute,
    inside,
    on_terminal,
    python,
    save,
    snapshot,
)
from tests.harness.effort import cases
from tests.harness.forks import INSTALLED
from tests.harness.small_schemas import draft, record, ref, small

REVISION = "2025-11-25"
SCHEMA = str(ROOT / "schema" / REVISION / "schema.json")
OWN = ("--out", "out", "--package", "acme.mcp")
REVISIONS = list(Store().pins)


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the package `acme.mcp` generated into `out`."""
    folder = tmp_path_factory.mktemp("own")
    done = bindgen("generate", REVISION, *OWN, cwd=folder, PYTHONHASHSEED="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(rf"{REVISION}  175 definitions  31 methods  \d+ files  [\d.]+ s  out/acme/mcp\n", done.stdout)
    return folder


@pytest.fixture
def copied(own: Path, tmp_path: Path) -> Path:
    """Return a copy of `own` that the test may change."""
    shutil.copytree(own / "out", tmp_path / "out")
    return tmp_path


# --- help and usage -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def commands() -> dict[tuple[str, ...], Any]:
    """Return the words of every command and command group -> the command."""
    import typer.main

    from mcp_bindgen.cli.app import app

    found: dict[tuple[str, ...], Any] = {}
    pending: list[tuple[tuple[str, ...], Any]] = [((), typer.main.get_command(app))]
    while pending:
        words, command = pending.pop()
        found[words] = command
        pending += [((*words, name), command.get_command(None, name)) for name in getattr(command, "commands", ())]
    return found


def test_the_main_commands_exist(commands: dict[tuple[str, ...], Any]) -> None:
    assert set(commands) >= {("generate",), ("check",), ("methods",), ("show",), ("schema", "import")}


@pytest.mark.full
def test_help_shows_an_example(commands: dict[tuple[str, ...], Any]) -> None:
    for words in commands:
        text = " ".join(answered(*words, "--help").split())
        if children := [other[-1] for other in commands if other and other[:-1] == words]:
            assert all(re.search(rf"\b{child} [A-Z]", text) for child in children)
        else:
            assert re.search(rf"Examples?: `mcp-bindgen {' '.join(words)}\b", text), text


def test_a_group_without_a_command_shows_its_help() -> None:
    for group in [(), ("schema",)]:
        done, asked = inside(*group), inside(*group, "--help")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.rstrip() == asked.stdout.rstrip()


def test_the_list_of_commands_has_the_first_sentence_of_each_command(commands: dict[tuple[str, ...], Any]) -> None:
    text = " ".join(inside("--help").stdout.split())
    for words, command in commands.items():
        if len(words) == 1:
            assert f"{words[0]} {' '.join(command.get_short_help_str(1000).split())}" in text


def test_every_option_has_one_meaning(commands: dict[tuple[str, ...], Any]) -> None:
    meanings: dict[str, set[str]] = {}
    for command in commands.values():
        for parameter in command.params:
            if parameter.param_type_name == "option":
                for name in parameter.opts:
                    meanings.setdefault(name, set()).add(f"{parameter.metavar}: {parameter.help}")
    assert {name: found for name, found in meanings.items() if len(found) > 1} == {}


def test_help_groups_the_commands_and_shows_three_examples() -> None:
    lines = inside("--help").stdout.splitlines()
    headings = ["Generate:", "Compare:", "Build servers and clients:", "Talk to servers:", "Maintain:"]
    assert [line for line in lines if line in headings] == headings
    assert sum(line.strip().startswith("`mcp-bindgen ") for line in lines) == 3


FACTS = [
    *(("schema", "list"), ("schema", "status"), ("methods", REVISION), ("show", REVISION, "Tool")),
    *(("history", "Tool.annotations"), ("bridges",), ("auth", "list")),
]


@pytest.mark.full
def test_informational_commands_print_stable_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in FACTS:
        monkeypatch.setenv("MCP_BINDGEN_HOME", str(tmp_path))
        first, again = answered(*words, "--json"), answered(*words, "--json")
        assert isinstance(json.loads(first), dict | list)
        assert first == again


@pytest.mark.full
def test_comparisons_with_an_upstream_file_are_printed_as_json(tmp_path: Path) -> None:
    definitions = Store().structure(REVISION)["$defs"]
    file = save(tmp_path / "upstream.json", {"$defs": {**definitions, "Loan": {"type": "string"}}})
    verified = json.loads(answered("schema", "verify", REVISION, file, "--json", code=1))
    assert verified == {"revision": REVISION, "isPinnedFile": False, "differences": ["/$defs/Loan: new"]}
    (comparison,) = json.loads(answered("schema", "status", "--against", file, "--json", code=1))["comparisons"]
    assert [(one["rule"], one["subject"]) for one in comparison["findings"]] == [("definition-added", "Loan")]


def test_the_version_is_printed() -> None:
    assert re.fullmatch(r"mcp-bindgen \d+\.\d+\.\d+\n", answered("--version"))


def test_wrong_usage_prints_the_usage_and_exits_with_2() -> None:
    for words in ["nope", "methods", f"methods {REVISION} --nope", f"schema import {REVISION}"]:
        done = inside(*words.split())
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("Usage: mcp-bindgen")


def test_an_unknown_revision_gives_a_suggestion(tmp_path: Path) -> None:
    for words in [
        "methods WRONG",
        "show WRONG Tool",
        "check WRONG",
        "generate WRONG --out x --package acme",
        f"schema verify WRONG {SCHEMA}",
    ]:
        line = complaint(*words.replace("WRONG", "2025-11-52").split(), cwd=tmp_path)
        assert "no revision '2025-11-52'; did you mean 2025-11-25?" in line
        assert all(revision in line for revision in REVISIONS)


def test_the_json_schema_of_a_report_is_not_printed_beside_revisions() -> None:
    for command in ("diff", "model"):
        assert "--json-schema" in complaint(command, REVISION, "--json-schema")


TO_X = "--out x --package acme"


@pytest.mark.full
@pytest.mark.parametrize("command", ["generate", "check"])
@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (f"{REVISION} --out x", "--package NAME"),
        (f"{REVISION} --package acme", "--out DIR"),
        (TO_X, "one revision"),
        (f"{REVISION} 2026-07-28 {TO_X}", "one revision"),
        (f"{REVISION} --schema s.json --revision r {TO_X}", "--schema"),
        (f"--schema {SCHEMA} {TO_X}", "--revision NAME"),
        ("--schema s.json --revision r", "--out DIR"),
        (f"{REVISION} --revision r {TO_X}", "--schema FILE"),
        (f"{REVISION} --semantics s.toml {TO_X}", "--schema FILE"),
        (f"{REVISION} --only tools", "--out DIR"),
        (f"{REVISION} --out x --package acme-mcp", "letters"),
        (f"{REVISION} --out x --package acme..mcp", "letters"),
        (f"{REVISION} --out x --package acme.class", "'acme.class'"),
        (f"{REVISION} {TO_X} --only tols", "did you mean tools?"),
        (f"{REVISION} {TO_X} --only ,", "--only"),
        (f"--schema s.json --revision r {TO_X}", "s.json"),
    ],
)
def test_incompatible_or_missing_options_are_refused_with_a_fix(
    command: str, words: str, fix: str, tmp_path: Path
) -> None:
    assert fix in complaint(command, *words.split(), cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


# --- check ----------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_this_checkout_is_in_sync(tmp_path: Path) -> None:
    store = Store()
    cores = [store.effective(revision) for revision in REVISIONS]
    extensions = [f"{core.revision} {one.label}" for core in cores for one in store.extensions_of(core)]
    in_sync = [f"{name}  in sync" for name in (*REVISIONS, *extensions, "bridges")]
    assert answered("check", cwd=tmp_path).splitlines() == in_sync


@pytest.mark.full
def test_drift_is_shown_with_the_command_that_fixes_it(own: Path, copied: Path) -> None:
    file = copied / "out" / "acme" / "mcp" / "errors.py"
    edited = file.read_text("utf-8").replace("-32601", "-32600")
    file.write_text(edited, "utf-8")

    done = inside("check", REVISION, *OWN, cwd=copied, code=1)
    assert "\n-METHOD_NOT_FOUND: Final = -32600\n+METHOD_NOT_FOUND: Final = -32601\n" in done.stdout
    assert done.stdout.startswith("--- mcp/errors.py (on disk)\n+++ mcp/errors.py (from the schema)\n@@ ")
    assert done.stdout.endswith(f"\n{REVISION}  differs\n")
    assert file.read_text("utf-8") == edited, "check only looks"

    command = shlex.split(done.stderr.removeprefix("out of sync; run: "))
    assert command == ["mcp-bindgen", "generate", REVISION, *OWN]
    assert inside(*command[1:], cwd=copied).returncode == 0
    assert snapshot(copied / "out") == snapshot(own / "out")
    assert inside("check", REVISION, *OWN, cwd=copied).stdout == f"{REVISION}  in sync\n"


# --- methods and show -----------------------------------------------------------------------------------------


@pytest.mark.full
def test_definitions_of_a_draft_are_shown_with_their_diagnostics(tmp_path: Path) -> None:
    file = save(tmp_path / "draft.json", small(FindBookResult=None, Shelf=record(book=ref("Book"))))
    warnings = inside("methods", file).stderr
    assert [line.partition(":")[0] for line in warnings.splitlines()] == ["warning", "warning"]
    assert inside("methods", file, "--strict").returncode == inside("show", file, "Shelf", "--strict").returncode == 2
    ((method,), shelf) = (
        json.loads(inside(*words, "--json").stdout) for words in (("methods", file), ("show", file, "Shelf"))
    )
    assert [diagnostic["kind"] for diagnostic in method["diagnostics"]] == ["result-assumed"]
    assert [diagnostic["pointer"] for diagnostic in shelf["diagnostics"]] == ["/$defs/Shelf/properties/book"]
    story = json.loads(inside("history", "tools/call", "--schema", file, "--json").stdout)
    assert [diagnostic["kind"] for diagnostic in story["diagnostics"]] == ["reference-dangling", "result-assumed"]


@pytest.mark.full
def test_methods_are_printed_as_json() -> None:
    methods = json.loads(answered("methods", "2026-07-28", "--json"))
    assert len(methods) == 21
    assert [method["name"] for method in methods] == sorted(method["name"] for method in methods)
    (call,) = (method for method in methods if method["name"] == "tools/call")
    assert {tuple(method) for method in methods} == {tuple(call)}
    deprecated = {method["name"] for method in methods if method["deprecated"]}
    assert deprecated == {"notifications/message", "roots/list", "sampling/createMessage"}
    assert call.pop("doc")
    names = {"name": "tools/call", "definition": "CallToolRequest", "stub": "call_tool"}
    way = {"kind": "request", "sender": "client", "carrier": "message", "capabilities": {"client": "server.tools"}}
    types = {"params": "CallToolRequestParams", "paramsRequired": True, "result": "CallToolResult"}
    more = {"alternatives": ["InputRequiredResult"], "deprecated": None, "origin": None, "diagnostics": []}
    assert call == {**names, **way, **types, **more}


@pytest.mark.full
@pytest.mark.parametrize("colour", cases([{}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}], quick=[{}]), ids=str)
def test_methods_in_a_pipe_are_one_line_each(colour: dict[str, str]) -> None:
    done = bindgen("methods", "2026-07-28", cwd=None, code=0, COLUMNS="40", **colour)
    lines = re.sub(r"\x1b\[[\d;]*m", "", done.stdout).splitlines()
    assert len(lines) == 1 + 21
    assert lines[0].split() == ["METHOD", "KIND", "SENDER", "CARRIER", "PARAMS", "RESULT", "NEEDS"]
    (call,) = (re.split(" {2,}", line) for line in lines if line.startswith("tools/call "))
    result = "CallToolResult | InputRequiredResult"
    assert call == ["tools/call", "request", "client", "message", "CallToolRequestParams", result, "server.tools"]
    if "FORCE_COLOR" not in colour:
        assert "\x1b" not in done.stdout


COLOUR = re.compile(r"\x1b\[(\d+;)*[39]\d(;\d+)*m")


@pytest.mark.full
def test_a_terminal_gets_colour_unless_no_color_is_set() -> None:
    assert COLOUR.search(on_terminal("schema", "--help"))
    assert not COLOUR.search(on_terminal("schema", "--help", NO_COLOR="1"))


@pytest.mark.full
def test_methods_are_wrapped_without_truncation_on_a_terminal() -> None:
    lines = re.sub(r"\x1b\[[\d;]*m", "", on_terminal("methods", "2025-11-25")).splitlines()
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)
    column = lines[0].index("KIND")
    assert "notifications/resources/list_changed" in "".join(line[:column].strip() for line in lines)


def test_show_prints_a_definition() -> None:
    printed = answered("show", REVISION, "Tool")
    assert "\x1b" not in printed
    lines = [re.split(" {2,}", line) for line in printed.splitlines()]
    assert lines[0] == [f"Tool (MCP {REVISION}): object"]
    assert ["inputSchema", "input_schema", "ToolInputSchema", "yes"] in [line[:4] for line in lines]
    assert ["_meta", "meta", "object", "no"] in [line[:4] for line in lines]
    assert lines[-2:] == [["Other members: any JSON"], ["Used by: CreateMessageRequestParams, ListToolsResult"]]


def test_show_prints_a_method_as_its_request_definition() -> None:
    assert inside("show", REVISION, "tools/call").stdout == inside("show", REVISION, "CallToolRequest").stdout


def test_show_prints_json() -> None:
    shown = json.loads(answered("show", "2024-11-05", "Annotated", "--json"))
    assert (shown["name"], shown["revision"], shown["type"]) == ("Annotated", "2024-11-05", "object")
    assert (shown["inline"], shown["deprecated"], shown["otherMembers"]) == (False, None, "any JSON")
    (field,) = shown["fields"]
    assert field.pop("doc")
    assert (field.pop("wire"), field.pop("name")) == ("annotations", "annotations")
    assert field == {"type": "Annotations", "required": False, "default": None, "deprecated": None}


def test_show_suggests_a_name_for_an_unknown_definition() -> None:
    for wrong, near in [("Toool", "Tool"), ("tools/cal", "tools/call"), ("xyzzy", "methods")]:
        line = complaint("show", REVISION, wrong)
        assert f"no definition or method {wrong!r}" in line
        assert near in line.partition(";")[2]


# --- schema ---------------------------------------------------------------------------------------------------


def test_a_schema_folder_is_imported_listed_and_verified(tmp_path: Path) -> None:
    folder, upstream = tmp_path / "schema", save(tmp_path / "draft.json", draft())
    folder.mkdir()
    for name in ("semantics.toml", "docs.toml"):
        shutil.copy(ROOT / "schema" / name, folder)
    here = ("--folder", folder)

    dates = ("--commit", "abc", "--changed", "2030-02-01")
    imported = answered("schema", "import", "2030-01-31", upstream, *dates, *here)
    assert imported.startswith("2030-01-31  stateless  structure ")

    listed = [line.split() for line in inside("schema", "list", *here).stdout.splitlines()]
    assert listed[0] == ["REVISION", "ERA", "STATUS", "CHANGED", "UPSTREAM", "FROM"]
    assert listed[1:] == [["2030-01-31", "stateless", "released", "2030-02-01", "abc", "mcp-bindgen"]]

    verified = answered("schema", "verify", "2030-01-31", upstream, *here)
    assert verified == "2030-01-31: same structure, the pinned file\n"

    done = inside("schema", "verify", "2030-01-31", save(tmp_path / "small.json", small()), *here, code=1)
    assert "/$defs/Shelf: gone\n" in done.stdout
    assert "/$defs/FindBookRequest: new\n" in done.stdout
    assert re.fullmatch(r"2030-01-31: \d+ differences in structure\n", done.stderr)

    done = inside("schema", "status", *here, code=1)
    assert re.search(r"^2030-01-31 +as pinned +0 +28 +\d+/28 +\d+/\d+$", done.stdout, re.MULTILINE)

    committed = folder / "2030-01-31" / "schema.json"
    committed.write_text(committed.read_text("utf-8").replace('"form"', '"shape"'), "utf-8")
    assert "differs from its pin" in inside("schema", "status", *here).stdout


@pytest.mark.full
def test_the_committed_schema_folder_is_sound() -> None:
    revisions, extensions = answered("schema", "status").split("\n\n")
    assert [line.split()[:3] for line in revisions.splitlines()[1:]] == [[name, "as", "pinned"] for name in REVISIONS]
    assert all(line.split()[1:3] == ["as", "pinned"] for line in extensions.splitlines()[1:])


def test_schema_commands_report_invalid_input(tmp_path: Path) -> None:
    for words, says in [
        ("import 2030-01-31 gone.json --commit abc --folder .", "gone.json: cannot be read"),
        ("import 2030-02-30 draft.json --commit abc --folder .", "'2030-02-30' is not a date"),
        ("import 'to morrow' draft.json --folder .", "'to morrow' is not the name of a revision"),
        ("import tomorrow draft.json --status released --folder .", "'tomorrow' is not a date"),
        ("remove 2025-11-25", "MCP 2025-11-25 is part of this installation"),
        ("remove 2025-11-26", "there is no revision '2025-11-26'"),
        ("status --revision 2025-11-26", "there is no revision '2025-11-26'"),
        ("list --folder gone", "revisions.toml: cannot be read"),
        ("status --folder gone", "revisions.toml: cannot be read"),
        ("verify 2025-11-25 bad.json", "bad.json: is not JSON"),
    ]:
        save(tmp_path / "draft.json", draft())
        (tmp_path / "bad.json").write_text("{", "utf-8")
        assert says in complaint("schema", *shlex.split(words), cwd=tmp_path)


def test_a_status_is_released_or_draft(tmp_path: Path) -> None:
    save(tmp_path / "draft.json", draft())
    words = "schema import 2030-01-31 draft.json --commit a --status relased --folder ."
    assert inside(*words.split(), cwd=tmp_path).returncode == 2
    assert not (tmp_path / "revisions.toml").exists()


# --- generate -------------------------------------------------------------------------------------------------

LIST_NAMES = "import acme.mcp as m; print(m.REVISION, *sorted(n for n in vars(m.Client) if not n.startswith('_')))"


@pytest.mark.full
def test_a_generated_package_can_be_imported(own: Path) -> None:
    names = python(LIST_NAMES, own / "out").split()
    assert names[0] == REVISION
    assert {"call_tool", "get_prompt", "on_create_message", "notify_roots_list_changed"} <= set(names)


@pytest.mark.full
def test_generation_can_be_limited_to_some_capabilities(own: Path, tmp_path: Path) -> None:
    answered("generate", REVISION, *OWN, "--only", "tools", cwd=tmp_path)
    names = python(LIST_NAMES, tmp_path / "out").split()
    assert {"call_tool", "list_tools", "iter_tools", "ping"} <= set(names)
    assert not {"get_prompt", "on_create_message", "list_resources", "initialize"} & set(names)
    made = "t.CallToolResult(content=[t.TextContent(text='x')]).model_dump_json()"
    use = f"from acme.mcp import types as t; print({made})"
    assert json.loads(python(use, tmp_path / "out")) == {"content": [{"type": "text", "text": "x"}]}
    whole, part = (snapshot(folder / "out")["acme/mcp/types.py"] for folder in (own, tmp_path))
    assert b"class Tool(" in part
    assert b"class GetPromptResult(" in whole
    assert b"class GetPromptResult(" not in part
    assert len(part) < 0.7 * len(whole)
    answered("check", REVISION, *OWN, "--only", "tools", cwd=tmp_path)


@pytest.mark.full
def test_generated_files_name_their_schema_and_command(own: Path) -> None:
    digest = Store().effective(REVISION).digest
    files = snapshot(own / "out")
    assert set(files) >= {"acme/mcp/__init__.py", "acme/mcp/types.py", "acme/mcp/py.typed"}
    for name, content in files.items():
        schema = f", schema {digest[:16]}" if name.endswith("/types.py") else ""
        assert content.decode().splitlines()[:3] == [
            f"# {MARK} from MCP {REVISION}{schema}. Do not edit.",
            "#",
            f"# Regenerate with: mcp-bindgen generate {REVISION} --out out --package acme.mcp",
        ]


@pytest.mark.full
def test_the_same_input_gives_the_same_bytes(own: Path, tmp_path: Path) -> None:
    assert bindgen("generate", REVISION, *OWN, cwd=tmp_path, PYTHONHASHSEED="2", LC_ALL="C").returncode == 0
    assert snapshot(tmp_path) == snapshot(own)


@pytest.mark.full
def test_a_repeated_generation_reports_no_change(copied: Path) -> None:
    assert inside("generate", REVISION, *OWN, cwd=copied).stdout.endswith("  out/acme/mcp (unchanged)\n")


@pytest.mark.full
def test_a_file_in_place_of_the_output_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine", "utf-8")
    assert "out/acme/mcp: " in complaint("generate", REVISION, *OWN, "--force", cwd=tmp_path)
    assert snapshot(tmp_path) == {"out": b"mine"}


@pytest.mark.full
def test_a_folder_with_other_files_is_overwritten_only_with_force(own: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out" / "acme" / "mcp"
    folder.mkdir(parents=True)
    mine = {"client.py": b"print('mine')\n", "notes.txt": b"mine"}
    for name, content in mine.items():
        (folder / name).write_bytes(content)

    line = complaint("generate", REVISION, *OWN, cwd=tmp_path)
    assert line.startswith("error: out/acme/mcp: 2 files there were not generated by us")
    assert "--force" in line
    assert snapshot(folder) == mine

    answered("generate", REVISION, *OWN, "--force", cwd=tmp_path)
    assert snapshot(tmp_path) == {**snapshot(own), "out/acme/mcp/notes.txt": b"mine"}


# --- outputs that cannot be written -----------------------------------------------------------------------------

FULL = Path("/dev/full")


def shell(command: str, cwd: Path, **variables: str) -> Done:
    """Run a shell line with `pipefail`, in which `bindgen` stands for the real command."""
    line = f'set -o pipefail; bindgen() {{ "{INSTALLED}" "$@"; }}; {command}'
    return execute("bash", "-c", line, cwd=cwd, code=None, **variables)


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
def test_a_full_disk_gives_a_one_line_error(tmp_path: Path) -> None:
    for command, out, err in (
        ("bindgen show 2025-11-25 tools/call > /dev/full", "", "error: the output: No space left on device\n"),
        ("bindgen show no-such-revision 2> /dev/full", "", ""),
    ):
        done = shell(command, tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (2, out, err)


@pytest.mark.full
def test_a_file_on_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    contract = save(tmp_path / "contract.json", {"tools": []})
    for words in (
        ("generate", REVISION, *OWN),
        ("client", "--from", contract, "--out", "some/new/client.py"),
        ("scaffold", "server", "weather"),
        ("diff", "2025-06-18", REVISION, "--out", "changes.txt"),
    ):
        assert "No space left on device" in complaint(*words, cwd=tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["contract.json"]


@pytest.mark.full
def test_a_closed_output_causes_no_traceback(tmp_path: Path) -> None:
    done = shell("bindgen show 2025-11-25 tools/call | true", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    done = shell("bindgen methods 2025-11-25 >&- 2>&-", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.full
def test_characters_missing_in_the_output_encoding_are_escaped(tmp_path: Path) -> None:
    tool = {"name": "é", "description": "→ 🌍", "inputSchema": {"type": "object"}}
    script = tmp_path / "server.py"
    script.write_text(
        "from mcp_bindgen.runtime import run\nfrom mcp_bindgen.v2025_11_25 import Server\n"
        f"class Odd(Server):\n    def list_tools(self, params, ctx):\n        return {{'tools': [{tool!r}]}}\n"
        "run(Odd())\n",
        "utf-8",
    )
    server = shlex.quote(f"'{sys.executable}' '{script}'")
    done = shell(f"bindgen contract export {server}", tmp_path, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert json.loads(done.stdout)["tools"] == [tool]
    done = shell("bindgen diff 2025-06-18 2025-11-25 --format markdown", tmp_path, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "# MCP 2025-06-18 \\u2192 2025-11-25")


def test_ctrl_c_during_imports_is_silent(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt", "utf-8")
    done = shell("bindgen diff 2025-06-18 2025-11-25", tmp_path, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


# --- commands of other packages -------------------------------------------------------------------------------

PLUGIN = '''
from mcp_bindgen.cli.table import Command

COMMANDS = ROWS

def greet(name: str) -> None:
    """Greet somebody."""
    print(f"Hello, {name}!")
'''


@pytest.mark.full
@pytest.mark.parametrize(
    ("rows", "words", "code", "says"),
    [
        ('[Command("greet", "Acme", "acme")]', ("greet", "Ada"), 0, "Hello, Ada!"),
        ('[Command("greet", "Acme", "acme")]', ("--help",), 0, "Greet somebody."),
        ('[Command("greet", "Acme", "acme")]', ("greet",), 2, "Error: Missing argument"),
        (
            '[Command("call", "Acme", "acme")]',
            ("--help",),
            0,
            "the command call of acme is left out: its name is taken",
        ),
        ('[Command("check", "Acme", "acme")]', ("check", "--help"), 0, "its name is taken"),
        ('[Command("greet", "Acme", "missing")]', ("--help",), 0, "Cannot be loaded."),
        (
            '[Command("greet", "Acme", "missing")]',
            ("greet",),
            2,
            "of missing cannot be loaded: No module named 'missing'",
        ),
        (
            '[Command("other", "Acme", "acme")]',
            ("other",),
            2,
            "cannot be loaded: module 'acme' has no attribute 'other'",
        ),
        ("5", ("methods", "2025-11-25"), 0, "an entry point of acme is left out: 5 is no Command"),
        ('("hello",)', ("--help",), 0, "an entry point of acme is left out: 'hello' is no Command"),
        ("1 / 0", ("--help",), 0, "the table of commands acme of acme is left out: division by zero"),
    ],
)
def test_commands_of_another_package(rows: str, words: tuple[str, ...], code: int, says: str, tmp_path: Path) -> None:
    """Its module comes first on the path, as a folder of `PYTHONPATH` does."""
    metadata = tmp_path / "acme-1.0.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0.0\n", "utf-8")
    (metadata / "entry_points.txt").write_text("[mcp_bindgen.commands]\nacme = acme:COMMANDS\n", "utf-8")
    (tmp_path / "acme.py").write_text(PLUGIN.replace("ROWS", rows), "utf-8")
    done = execute(INSTALLED, *words, PYTHONPATH=str(tmp_path))
    assert (done.returncode, says in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
