"""`upgrade` converts a project to another revision and keeps every line of the project's owner."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_bindgen.scaffold.upgrade import upgrade
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.transaction import Change, put, save
from tests.harness.commands import COMMAND, execute, inside, python, snapshot
from tests.harness.marks import unmarked

OLD, NEW = "v2025_11_25", "v2026_07_28"

# --- putting files in place -------------------------------------------------------------------------------------------


def test_a_failed_or_conflicting_write_changes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    before = snapshot(tmp_path)
    changes = {
        "a": Change(b"a", b"1"),
        "new/file": Change(None, b"3"),
        "b": Change(b"b", b"2"),
        "c": Change(b"c", None),
    }
    real, calls = Path.replace, list[Path]()

    def failing(self: Path, target: Path) -> Path:
        calls.append(self)
        if len(calls) == 2:
            raise OSError(28, "No space left on device", str(target))
        return real(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(BadInput, match="No space left"):
        put(tmp_path, changes)
    assert snapshot(tmp_path) == before
    monkeypatch.undo()
    (tmp_path / "c").write_text("of somebody else")
    with pytest.raises(BadInput, match="was changed meanwhile"):
        put(tmp_path, changes)
    assert snapshot(tmp_path) == {**before, "c": b"of somebody else"}
    (tmp_path / "c").write_text("c")
    put(tmp_path, changes)
    assert snapshot(tmp_path) == {"a": b"1", "b": b"2", "new/file": b"3"}


@pytest.mark.full
def test_a_kill_during_the_write_leaves_no_partial_file(tmp_path: Path) -> None:
    script = """
import os, pathlib, sys
from mcp_bindgen.spec.transaction import Change, put
real, left = pathlib.Path.replace, iter(range(int(sys.argv[2])))
pathlib.Path.replace = lambda self, target: os._exit(9) if next(left, None) is None else real(self, target)
put(pathlib.Path(sys.argv[1]), {str(n): Change(b'old' * 1000, b'new' * 1000) for n in range(3)})
"""
    for survived in range(4):
        folder = tmp_path / str(survived)
        folder.mkdir()
        for name in range(3):
            (folder / str(name)).write_bytes(b"old" * 1000)
        done = execute(sys.executable, "-c", script, folder, survived)
        assert done.returncode == (0 if survived == 3 else 9), done.stderr
        found = [(folder / str(name)).read_bytes() for name in range(3)]
        assert found == [b"new" * 1000] * survived + [b"old" * 1000] * (3 - survived)


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    save(pipe, "text", "fix")
    assert (pipe.is_fifo(), os.read(reader, 9)) == (True, b"text")
    os.close(reader)


# --- projects ---------------------------------------------------------------------------------------------------------

SERVER = """from __future__ import annotations

from mcp_bindgen.v2025_11_25 import Context, Server, types


class Weather(Server):
    info = types.Implementation(name="weather", version="1.0.0")

    async def list_tools(self, params: types.PaginatedRequestParams, ctx: Context) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[])
"""
TEST = """from mcp_bindgen.v2025_11_25 import Client, Server
from weather.server import Weather

assert issubclass(Weather, Server)
"""


def project(folder: Path, revisions: str = '"2025-11-25"', **more: str) -> Path:
    """Write a project in our layout; `more` are other files, `__` in their names stands for a slash."""
    given = {
        "pyproject.toml": f"""# of 2025-11-25
[project]
name = "weather"\t# "2025-11-25"
[tool.mcp-bindgen]
package = "weather"
kind = "server"
revisions = [
    {revisions},  # what we speak: "2025-11-25"
]
""",
        "src/weather/__init__.py": "",
        "src/weather/__main__.py": "from .server import Weather\n\nraise SystemExit(Weather().no_such_thing)\n",
        "src/weather/server.py": SERVER,
        "tests/test_server.py": TEST,
        **{name.replace("__", "/") + ".py": text for name, text in more.items()},
    }
    for name, text in given.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", newline="")
    return folder


def upgraded(folder: Path, *options: str, to: str = "2026-07-28", code: int = 0) -> str:
    """Return the output of an upgrade."""
    done = inside("upgrade", folder, "--to", to, *options)
    assert (done.returncode, done.stderr if code != 1 else "") == (code, ""), done.stdout + done.stderr
    return done.stdout


def test_an_upgrade_changes_imports_and_the_revision_of_the_project(tmp_path: Path) -> None:
    folder = project(tmp_path / "weather")
    before = snapshot(folder)
    said = upgraded(folder)
    assert said.splitlines()[:4] == [
        "weather: MCP 2025-11-25 -> 2026-07-28",
        f"migrated   {folder}/src/weather/server.py",
        f"migrated   {folder}/tests/test_server.py",
        "mentions   2025-11-25 is still named in " + ", ".join(f"{folder}/pyproject.toml:{n}" for n in (1, 3, 8)),
    ]
    assert "no handshake" in said
    after = snapshot(folder)
    assert after.keys() == before.keys()
    for name in before:
        count = {"pyproject.toml": 0, "src/weather/server.py": 1, "tests/test_server.py": 1}.get(name, 0)
        assert after[name].replace(NEW.encode(), OLD.encode()).count(OLD.encode()) == before[name].count(OLD.encode())
        assert after[name].count(NEW.encode()) == count
    lines = zip(before["pyproject.toml"].split(b"\n"), after["pyproject.toml"].split(b"\n"), strict=True)
    assert [(a, b) for a, b in lines if a != b] == [
        (b'    "2025-11-25",  # what we speak: "2025-11-25"', b'    "2026-07-28",  # what we speak: "2025-11-25"')
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["weather"]


@pytest.mark.full
def test_a_second_run_completes_an_interrupted_upgrade(tmp_path: Path) -> None:
    folder = project(tmp_path / "weather")
    changes = upgrade(folder, "2025-11-25", "2026-07-28").changes
    names = list(changes)
    assert names == ["src/weather/server.py", "tests/test_server.py", "pyproject.toml"]
    upgraded(folder)
    for done in range(3):
        other = project(tmp_path / str(done) / "weather")
        put(other, {name: changes[name] for name in names[:done]})
        upgraded(other)
        assert snapshot(other) == snapshot(folder)


@pytest.mark.full
def test_an_upgrade_edits_renamed_types_and_lists_removed_types(tmp_path: Path) -> None:
    logs = "from mcp_bindgen.v2025_11_25 import types\n\n\nclass Level(types.SetLevelRequestParams):\n    pass\n"
    imports = "from mcp_bindgen.v2025_11_25.types import RequestMeta, Tool"
    tool = f"{imports}\nx = Tool(name='x', input_schema=y, execution=z)\n"
    folder = project(tmp_path / "weather", src__weather__logs=logs, src__weather__tool=tool)
    assert "types.SetLevelRequestParams is gone" in upgraded(folder, code=1)
    left = (folder / "src/weather/logs.py").read_text()
    assert (unmarked(left), left.count("# TODO")) == (logs.replace(OLD, NEW), 1)
    edited = tool.replace(OLD, NEW).replace("RequestMeta", "RequestMetaObject")
    edited = edited.replace(" execution=z", "\n    # execution=z\n")
    assert unmarked((folder / "src/weather/tool.py").read_text()) == edited


@pytest.mark.full
def test_an_upgrade_and_a_downgrade_restore_the_project(tmp_path: Path) -> None:
    folder = project(tmp_path / "weather")
    before = snapshot(folder)
    upgraded(folder)
    assert "begins with a handshake" in upgraded(folder, to="2025-11-25")
    assert snapshot(folder) == before


@pytest.mark.full
def test_a_capability_that_the_new_revision_lacks_is_left(tmp_path: Path) -> None:
    test = "from mcp_bindgen.v2025_03_26 import Client\n\nassert Client().server_capabilities['completions']\n"
    folder = project(tmp_path / "weather", '"2025-03-26"', tests__test_server=test)
    left = f"left       a capability that 2024-11-05 lacks is named in {folder}/tests/test_server.py:3\n"
    assert left in upgraded(folder, to="2024-11-05", code=1)


@pytest.mark.full
def test_an_upgrade_to_the_same_revision_changes_nothing(tmp_path: Path) -> None:
    folder = project(tmp_path / "weather", src__weather__old="from mcp_bindgen.v2025_06_18 import types\n")
    before = snapshot(folder)
    said = upgraded(folder, to="2025-11-25")
    assert said == (
        "weather speaks MCP 2025-11-25 already\n"
        f"{folder}/src/weather/old.py still imports v2025_06_18; --replace 2025-06-18 changes it\n"
    )
    assert snapshot(folder) == before
    assert f"migrated   {folder}/src/weather/old.py" in upgraded(folder, "--replace", "2025-06-18", to="2025-11-25")
    assert upgraded(folder, to="2025-11-25") == "weather speaks MCP 2025-11-25 already\n"


@pytest.mark.full
def test_one_of_several_revisions_is_replaced(tmp_path: Path) -> None:
    modules = {f"src__weather__server_{name[1:]}": SERVER.replace(OLD, name) for name in ("v2025_03_26", "v2025_06_18")}
    folder = project(tmp_path / "weather", '"2025-06-18", "2025-03-26"', **modules)
    assert f"migrated   {folder}/src/weather/server_2025_06_18.py" in upgraded(folder, "--replace", "2025-06-18")
    assert b'"2026-07-28", "2025-03-26",' in (folder / "pyproject.toml").read_bytes()
    assert "weather: MCP 2025-03-26 -> 2024-11-05" in upgraded(folder, to="2024-11-05")  # the oldest revision
    said = inside("upgrade", folder, "--replace", "2024-11-05", "--to", "2026-07-28")
    assert (said.returncode, "speaks both" in said.stderr) == (2, True)


@pytest.mark.full
def test_reexported_names_are_upgraded_together(tmp_path: Path) -> None:
    folder = project(
        tmp_path / "weather",
        src__weather__a="from mcp_bindgen import v2025_11_25\n__all__ = ['v2025_11_25']\n",
        src__weather__b="from .a import *\nfrom weather.a import v2025_11_25\nx = v2025_11_25.types.Tool\n",
    )
    upgraded(folder)
    python("import weather.b; assert weather.b.x.__module__ == 'mcp_bindgen.v2026_07_28.types'", folder / "src")
    (folder / "src/weather/b.py").write_text("from .a import *\nx = v2026_07_28.types.Tool\n")
    upgraded(folder, to="2025-11-25")
    python("import weather.b; assert weather.b.x.__module__ == 'mcp_bindgen.v2025_11_25.types'", folder / "src")
    other = project(
        tmp_path / "other",
        src__weather__v2025_11_25="x = 1\n",
        src__weather__b="from mcp_bindgen.v2025_11_25 import types\nfrom . import v2025_11_25\nx = v2025_11_25.x\n",
    )
    upgraded(other)
    python("import weather.b; assert weather.b.x == 1", other / "src")


@pytest.mark.full
def test_file_modes_and_links_are_kept(tmp_path: Path) -> None:
    module = "from mcp_bindgen.v2025_11_25 import types\n"
    folder = project(tmp_path / "weather", src__weather__tool=f"#!/usr/bin/python3\n{module}")
    (folder / "src/weather/tool.py").chmod(0o750)
    (folder / "src/weather/inner.py").symlink_to("tool.py")
    outside = tmp_path / "outside.py"
    outside.write_text(module)
    (folder / "src/weather/outer.py").symlink_to(outside)
    (folder / "src/weather/dangling").symlink_to("nowhere")
    assert f"left       {folder}/src/weather/outer.py is a link to a file elsewhere" in upgraded(folder, code=1)
    assert outside.read_text() == module
    assert NEW in (folder / "src/weather/tool.py").read_text()
    assert stat.S_IMODE((folder / "src/weather/tool.py").stat().st_mode) == 0o750
    links = ("inner.py", "outer.py", "dangling")
    assert [(folder / "src/weather" / name).is_symlink() for name in links] == [True] * 3


@pytest.mark.full
def test_a_dry_run_prints_an_applicable_patch(tmp_path: Path) -> None:
    odd = "# coding: latin-1\r\nfrom mcp_bindgen.v2025_11_25 import types\r\nx = '\xe4'\x0c\r\ny = 1"
    folder = project(tmp_path / "weather")
    (folder / "src/weather/odd.py").write_bytes(odd.encode("latin-1"))
    before = snapshot(folder)
    shutil.copytree(folder, tmp_path / "other")
    command = [str(COMMAND), "upgrade", str(folder), "--to", "2026-07-28"]
    done = subprocess.run([*command, "--dry-run"], capture_output=True)
    assert (done.returncode, b"(nothing is written)" in done.stderr) == (0, True), done.stderr
    assert snapshot(folder) == before
    applied = subprocess.run(["git", "apply", "--whitespace=nowarn"], input=done.stdout, cwd=tmp_path / "other")
    assert applied.returncode == 0
    upgraded(folder)
    assert snapshot(tmp_path / "other") == snapshot(folder) != before


@pytest.mark.full
@pytest.mark.parametrize("words", ["server --style app", "server --style class", "client"])
def test_adding_a_revision_to_a_project_without_a_contract_changes_nothing(words: str, tmp_path: Path) -> None:
    folder, (kind, *style) = tmp_path / "weather", words.split()
    assert inside("scaffold", kind, "weather", "--out", tmp_path, *style).returncode == 0
    before = snapshot(folder)
    done = inside("upgrade", folder, "--add", "2026-07-28")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"weather needs no change: a {kind} works with peers of all revisions, also of 2026-07-28\n"
        + ("a server whose code names `revisions` speaks only these: add it there\n" if kind == "server" else "")
        + f"to write its code or tests for 2026-07-28: mcp-bindgen upgrade {folder} --to 2026-07-28\n"
    )
    assert snapshot(folder) == before
    if kind == "server":
        command = ("call", folder, "--revision", "2026-07-28", "tools/call", "greet", '{"name": "Ada"}')
        assert "Hello, Ada!" in inside(*command).stdout
    assert "there is no revision '2026'" in inside("upgrade", folder, "--add", "2026").stderr


def move_source(folder: Path) -> None:
    (folder / "src").rename(folder.parent / "s")
    (folder / "src").symlink_to("../s")


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (None, ["--to", "2025-11-52"], "there is no revision '2025-11-52'; did you mean 2025-11-25?"),
        (None, ["--to", "2026-07-28", "--replace", "2024-11-05"], "the project does not speak 2024-11-05"),
        (None, ["--to", "2026-07-28", "--replace", "x"], "there is no revision 'x'"),
        (lambda folder: (folder / "pyproject.toml").unlink(), ["--to", "2026-07-28"], "has no pyproject.toml"),
        (move_source, ["--to", "2026-07-28"], "is a link to a folder elsewhere"),
    ],
)
def test_bad_input_is_reported_in_one_line_and_changes_nothing(
    change: Callable[[Path], object] | None, options: list[str], message: str, tmp_path: Path
) -> None:
    folder = project(tmp_path / "weather")
    if change is not None:
        change(folder)
    before = snapshot(tmp_path)
    done = inside("upgrade", folder, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert snapshot(tmp_path) == before


@pytest.mark.full
def test_other_generated_modules_are_kept_and_listed_with_their_command(tmp_path: Path) -> None:
    head = "# Generated by mcp-bindgen for MCP 2025-11-25. Do not edit: sha256 0123456789abcdef.\n#\n# From: a server\n"
    command = "# Regenerate with: mcp-bindgen client --from X --out Y\n"
    client = f"{head}{command}from mcp_bindgen.v2025_11_25 import Client\n"
    folder = project(tmp_path / "weather", src__weather__other=client)
    said = upgraded(folder, code=1)
    other = folder / "src/weather/other.py"
    assert f"left       {other} is generated; regenerate with: mcp-bindgen client --from X --out Y" in said
    assert other.read_text() == client


@pytest.mark.full
def test_an_upgrade_invalidates_compiled_modules(tmp_path: Path) -> None:
    folder = project(tmp_path / "weather")
    show = "import weather.server as s; print(s.types.__name__)"
    assert OLD in python(show, folder / "src")
    times = (folder / "src/weather/server.py").stat()
    upgraded(folder)
    os.utime(folder / "src/weather/server.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert NEW in python(show, folder / "src")
