"""`upgrade` takes a project to another revision, and every line of its owner's stays."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_bindgen.scaffold.upgrade.import_check import Interpreter, failures
from mcp_bindgen.scaffold.upgrade.project_upgrade import upgrade
from mcp_bindgen.scaffold.upgrade.rewrite_imports import rewrite_imports
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.transaction import Change, put
from tests.support.commands import execute, inside, python, snapshot
from tests.support.effort import examples

OLD, NEW = "v2025_11_25", "v2026_07_28"
OWN = frozenset({"weather"})

# --- moving imports: what stands in braces is the name of the package, all else stays ---------------------------------

HEADER = "import mcp_bindgen.{P}\nimport mcp_bindgen as mb\nfrom mcp_bindgen import {P}\n"

SNIPPETS = [
    "from mcp_bindgen.{P} import Server, types as mcp  # v2025_11_25 it was",
    "import os, mcp_bindgen.{P}.types as t, sys",
    "import mcp_bindgen . {P} . errors",
    "from mcp_bindgen \\\n  .{P}.types import (  # v2025_11_25\n    Tool,\n)",
    "from mcp_bindgen import (runtime,\n\t{P} as b)",
    "from mcp_bindgen import {P} as {P}",
    "from .base import {P}",
    "from weather.base import {P} as again",
    "from elsewhere import v2025_11_25 as theirs",
    "if True:\n\tfrom mcp_bindgen.{P} import *",
    "def f(x: '{P}.types.Tool | None', *, y: \"list[mb.{P}.types.Tool]\" = []) -> {P}.Context: ...",
    "ä = 'ä', {P}.types.Tool, mcp_bindgen.{P}.types, mb.{P}, self.v2025_11_25",
    "m = import_module('mcp_bindgen.{P}.types'), import_module('.{P}', 'mcp_bindgen'), import_module('.v2025_11_25')",
    "entry = 'mcp_bindgen.{P}:Server', r'mcp_bindgen.{P}', 'mcp_bindgen.' '{P}'",
    "words = 'see mcp_bindgen.v2025_11_25!', 'v2025_11_25', b'mcp_bindgen.v2025_11_25', 'mcp_bindgen.v2025_11_256'",
    "print(f'{{{P}.REVISION}} ö', f\"mcp_bindgen.{P}.{{m}}\")",
    "__all__ = ['{P}', 'm']",
    "__all__ += ['{P}']",
    "@{P}.decorated\nclass C({P}.Server):\n\tv2025_11_25_ = {P}.types\n\tx = y.v2025_11_25.z",
    "match x:\n  case {P}.types.Tool(name=n): pass",
    '"""\n  mcp_bindgen.v2025_11_25 in prose\n"""',
    "call(v2025_11_25=1)",
    "# v2025_11_25 \f and from mcp_bindgen.v2025_11_25 import Server",
    "x = (1,\f 2); y = '''\n\f\u2028\x85''', {P}",
    "\f",
    "",
    "   ",
    "pass;",
]


def filled(template: str, name: str) -> str:
    return template.replace("{{", "\0").replace("}}", "\1").replace("{P}", name).replace("\0", "{").replace("\1", "}")


@pytest.mark.parametrize("template", SNIPPETS)
def test_the_name_of_the_package_moves_and_nothing_else(template: str) -> None:
    before, after = (filled(HEADER + template, name).encode() for name in (OLD, NEW))
    moved = rewrite_imports(before, OLD, NEW, OWN)
    assert (moved.problem, moved.raw) == ("", after)
    changed = [n for n, (a, b) in enumerate(zip(before.split(b"\n"), after.split(b"\n"), strict=True), 1) if a != b]
    assert list(moved.lines) == changed


@settings(max_examples=examples(60, 150), deadline=None)
@given(st.data())
def test_files_of_any_form_keep_every_other_byte(data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.sampled_from(SNIPPETS), max_size=8))
    encoding, mark, cookie = data.draw(
        st.sampled_from(
            [
                ("utf-8", b"", ""),
                ("utf-8", b"\xef\xbb\xbf", ""),
                ("utf-8", b"", "# -*- coding: utf-8 -*-\n"),
                ("latin-1", b"", "#!/usr/bin/python\n# vim: set fileencoding=latin-1 :\n"),
                ("cp1252", b"", "# coding: cp1252\n"),
            ]
        )
    )
    new = data.draw(st.sampled_from([NEW, "draft", "v2027_01_01_rc"]))
    template = cookie + HEADER + "".join(f"{part}\n" for part in parts)
    if not data.draw(st.booleans()):
        template = template[:-1]
    if encoding != "utf-8":
        template = template.replace("\u2028", "").replace("\x85", "")
    ends = st.sampled_from(["\n", "\r\n", "\r"] if encoding == "utf-8" and not cookie else ["\n", "\r\n"])
    lines = template.split("\n")
    chosen = [data.draw(ends) for _ in lines[1:]]
    mixed = "".join(line + end for line, end in zip(lines, [*chosen, ""], strict=True))
    before, after = (mark + filled(mixed, name).encode(encoding) for name in (OLD, new))
    moved = rewrite_imports(before, OLD, new, OWN)
    assert (moved.problem, moved.raw) == ("", after)
    assert rewrite_imports(after, new, OLD, OWN).raw == before


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (
            "from mcp_bindgen import v2025_11_25\ndef f(v2025_11_25): return v2025_11_25\n",
            "line 2 calls something else",
        ),
        ("from mcp_bindgen import v2025_11_25\nv2025_11_25 = 1\n", "line 2 calls something else"),
        ("from mcp_bindgen import v2025_11_25\nfrom x import y as v2025_11_25\n", "line 2 calls something else"),
        ("from mcp_bindgen import v2025_11_25, v2026_07_28\n", "one file uses both revisions"),
        ("from mcp_bindgen.v2025_11_25 import A\nfrom mcp_bindgen.v2026_07_28 import B\n", "both revisions"),
        ("import mcp_bindgen.v2025_11_25 as a, mcp_bindgen.v2026_07_28.types as b\n", "both revisions"),
        ("from mcp_bindgen.v2025_11_25 import (\n", "is not Python that can be read"),
        ("from mcp_bindgen.v2025_11_25 import x\n\0", "is not Python that can be read"),
        ("# coding: klingon\nfrom mcp_bindgen.v2025_11_25 import x\n", "is not Python that can be read"),
        ("from mcp_bindgen.v2025_11_25 import x\n\udcff", "is not Python that can be read"),
        ("import mcp_bindgen.v2025_11_25\nx = 'mcp_bindgen.\\x762025_11_25'\n", "is not understood"),
        ("from mcp_bindgen.v\uff12025_11_25 import x, v2025_11_25\n", "is not understood"),
        ("from mcp_bindgen.v2025_11_25 import x\ny = " + "(" * 150 + ")" * 150 + "\n" + "-" * 100_000 + "1\n", "read"),
    ],
)
def test_what_is_not_clear_is_left(code: str, why: str) -> None:
    raw = code.encode(errors="surrogateescape")
    moved = rewrite_imports(raw, OLD, NEW, OWN)
    assert why in moved.problem
    assert (moved.raw, moved.lines) == (raw, ())


@pytest.mark.parametrize(
    "code",
    [
        "",
        "# v2025_11_25\n",
        "v2025_11_25 = 1\n",
        "from . import v2025_11_25\n",
        "import other.v2025_11_25\n",
        "x = v2025_11_25\n",
    ],
)
def test_names_that_are_not_ours_are_no_concern(code: str) -> None:
    moved = rewrite_imports(code.encode(), OLD, NEW)
    assert (moved.raw, moved.lines, moved.problem) == (code.encode(), (), "")


# --- importing --------------------------------------------------------------------------------------------------------


def test_every_module_and_test_is_imported_and_what_goes_wrong_is_told_with_its_place(tmp_path: Path) -> None:
    files = {
        "src/app/__init__.py": "",
        "src/app/good.py": "print('noise')\n",
        "src/app/slow.py": "while True: pass\n",
        "src/app/gone.py": "import os\nos._exit(0)\n",
        "src/app/inner/deep.py": "from app import late\n",
        "src/app/late.py": "x = 1\n\nfrom app.good import missing\n",
        "src/app/not-a-name.py": "1 / 0\n",
        "src/app/exits.py": "import atexit, threading, time\nthreading.Thread(target=time.sleep, args=[99]).start()\n",
        "tests/conftest.py": "import app.good\n",
        "tests/unit/test_same.py": "from helper import one\n",
        "tests/unit/helper.py": "one = 1\n",
        "tests/whole/__init__.py": "",
        "tests/whole/test_same.py": "from .helper import two\n",
        "tests/whole/helper.py": "two = 2\n",
        "tests/data.py": "1 / 0\n",
        "script.py": "1 / 0\n",
        ".venv/lib/x.py": "1 / 0\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = failures(tmp_path, Interpreter(Path(sys.executable), timeout=3))
    untried = {"src/app/not-a-name.py", "tests/unit/helper.py", "tests/whole/helper.py", "tests/data.py", "script.py"}
    assert found.keys() == files.keys() - untried - {".venv/lib/x.py"}
    reasons = {name: (failure.reason.partition(" (")[0], failure.trail) for name, failure in found.items() if failure}
    missing = "ImportError: cannot import name 'missing' from 'app.good'"
    assert reasons == {
        "src/app/slow.py": ("importing it did not end within 3 seconds", (("src/app/slow.py", 1),)),
        "src/app/gone.py": ("importing it ended Python with exit code 0", (("src/app/gone.py", 1),)),
        "src/app/late.py": (missing, (("src/app/late.py", 3),)),
        "src/app/inner/deep.py": (missing, (("src/app/inner/deep.py", 1), ("src/app/late.py", 3))),
    }


# --- putting files in place -------------------------------------------------------------------------------------------


def test_an_error_in_between_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_kill_in_between_leaves_whole_files(tmp_path: Path) -> None:
    script = (
        "import os, pathlib, sys\n"
        "from mcp_bindgen.spec.transaction import Change, put\n"
        "real, left = pathlib.Path.replace, [int(sys.argv[2])]\n"
        "def replace(self, target):\n"
        "    left[0] -= 1\n"
        "    if left[0] < 0: os._exit(9)\n"
        "    return real(self, target)\n"
        "pathlib.Path.replace = replace\n"
        "put(pathlib.Path(sys.argv[1]), {str(n): Change(b'old' * 1000, b'new' * 1000) for n in range(3)})\n"
    )
    for survived in range(4):
        folder = tmp_path / str(survived)
        folder.mkdir()
        for name in range(3):
            (folder / str(name)).write_bytes(b"old" * 1000)
        done = execute(sys.executable, "-c", script, folder, survived)
        assert done.returncode == (0 if survived == 3 else 9), done.stderr
        found = [(folder / str(name)).read_bytes() for name in range(3)]
        assert found == [b"new" * 1000] * survived + [b"old" * 1000] * (3 - survived)


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
    """A project in the layout of ours; `more` are other files, `__` in their names stands for a slash."""
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
    """What is said about an upgrade."""
    done = inside("upgrade", folder, "--to", to, *options)
    assert (done.returncode, done.stderr if code != 1 else "") == (code, ""), done.stdout + done.stderr
    return done.stdout


def test_imports_move_and_the_project_says_so(tmp_path: Path) -> None:
    folder = project(tmp_path / "weather")
    before = snapshot(folder)
    said = upgraded(folder)
    assert said.splitlines()[:4] == [
        "weather: MCP 2025-11-25 -> 2026-07-28",
        f"moved      {folder}/src/weather/server.py:3",
        f"moved      {folder}/tests/test_server.py:1",
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
def test_a_second_run_finishes_what_a_killed_one_began(tmp_path: Path) -> None:
    folder = project(tmp_path / "weather")
    changes = upgrade(folder, "2025-11-25", "2026-07-28", interpreter=Interpreter(Path(sys.executable))).changes
    names = list(changes)
    assert names == ["src/weather/server.py", "tests/test_server.py", "pyproject.toml"]
    upgraded(folder)
    for done in range(3):
        other = project(tmp_path / str(done) / "weather")
        put(other, {name: changes[name] for name in names[:done]})
        upgraded(other)
        assert snapshot(other) == snapshot(folder)


def test_back_again_is_as_before(tmp_path: Path) -> None:
    folder = project(tmp_path / "weather")
    before = snapshot(folder)
    upgraded(folder)
    assert "begins with a handshake" in upgraded(folder, to="2025-11-25")
    assert snapshot(folder) == before


def test_the_same_revision_is_nothing_to_do(tmp_path: Path) -> None:
    folder = project(tmp_path / "weather", src__weather__old="from mcp_bindgen.v2025_06_18 import types\n")
    before = snapshot(folder)
    said = upgraded(folder, to="2025-11-25")
    assert said == (
        "weather speaks MCP 2025-11-25 already\n"
        f"{folder}/src/weather/old.py still imports v2025_06_18; --from 2025-06-18 moves it\n"
    )
    assert snapshot(folder) == before
    assert f"moved      {folder}/src/weather/old.py:1" in upgraded(folder, "--from", "2025-06-18", to="2025-11-25")
    assert upgraded(folder, to="2025-11-25") == "weather speaks MCP 2025-11-25 already\n"


@pytest.mark.full
def test_one_of_several_revisions_is_replaced(tmp_path: Path) -> None:
    modules = {f"src__weather__server_{name[1:]}": SERVER.replace(OLD, name) for name in ("v2025_03_26", "v2025_06_18")}
    folder = project(tmp_path / "weather", '"2025-06-18", "2025-03-26"', **modules)
    assert f"moved      {folder}/src/weather/server_2025_06_18.py:3" in upgraded(folder, "--from", "2025-06-18")
    assert b'"2026-07-28", "2025-03-26",' in (folder / "pyproject.toml").read_bytes()
    assert "weather: MCP 2025-03-26 -> 2024-11-05" in upgraded(folder, to="2024-11-05")  # the oldest
    said = inside("upgrade", folder, "--from", "2024-11-05", "--to", "2026-07-28")
    assert (said.returncode, "speaks both" in said.stderr) == (2, True)


@pytest.mark.full
def test_what_could_not_be_imported_any_more_keeps_the_old_bindings(tmp_path: Path) -> None:
    logs = "from mcp_bindgen.v2025_11_25 import types\n\n\nclass Level(types.SetLevelRequestParams):\n    pass\n"
    again = "from .logs import Level\nfrom mcp_bindgen.v2025_11_25 import types\nx = Level, types.Tool\n"
    folder = project(tmp_path / "weather", src__weather__logs=logs, src__weather__again=again)
    said = upgraded(folder, code=1)
    assert f"left       {folder}/src/weather/logs.py:4 AttributeError: " in said
    assert "types.SetLevelRequestParams is gone" in said
    assert f"mcp-bindgen upgrade {folder} --from 2025-11-25 --to 2026-07-28" in said
    assert (folder / "src/weather/logs.py").read_text() == logs
    assert NEW in (folder / "src/weather/again.py").read_text()
    python("import weather.again, weather.server", folder / "src")
    (folder / "src/weather/logs.py").write_text(logs.replace("types.SetLevelRequestParams", "types.ModelPreferences"))
    assert f"moved      {folder}/src/weather/logs.py:1" in upgraded(folder, "--from", "2025-11-25")
    python("import weather.logs", folder / "src")


@pytest.mark.full
def test_names_that_modules_hand_on_move_together(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("import os\nos._exit(3)\n", "importing it ended Python with exit code 3"),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
        ("x = (\n", "SyntaxError: '(' was never closed"),
    ],
)
def test_what_could_not_be_imported_before_is_said_and_moved_all_the_same(
    text: str, reason: str, tmp_path: Path
) -> None:
    module = "from mcp_bindgen.v2025_11_25 import types\n"
    folder = project(tmp_path / "weather", src__weather__bad=text, src__weather__uses=f"{module}from . import bad\n")
    said = upgraded(folder)
    assert f"unknown    {folder}/src/weather/bad.py could not be imported before: {reason}" in said
    assert f"unknown    {folder}/src/weather/uses.py" in said
    assert "server.py could" not in said
    assert NEW in (folder / "src/weather/uses.py").read_text()


def test_modes_and_links_stay(tmp_path: Path) -> None:
    module = "from mcp_bindgen.v2025_11_25 import types\n"
    folder = project(tmp_path / "weather", src__weather__tool=f"#!/usr/bin/python3\n{module}")
    (folder / "src/weather/tool.py").chmod(0o750)
    (folder / "src/weather/inner.py").symlink_to("tool.py")
    outside = tmp_path / "outside.py"
    outside.write_text(module)
    (folder / "src/weather/outer.py").symlink_to(outside)
    (folder / "src/weather/dangling").symlink_to("nowhere")
    said = upgraded(folder, code=1)
    assert f"left       {folder}/src/weather/outer.py:1 it is a link to a file outside of the project" in said
    assert outside.read_text() == module
    assert NEW in (folder / "src/weather/tool.py").read_text()
    assert stat.S_IMODE((folder / "src/weather/tool.py").stat().st_mode) == 0o750
    links = ("inner.py", "outer.py", "dangling")
    assert [(folder / "src/weather" / name).is_symlink() for name in links] == [True] * 3


def test_a_dry_run_is_a_patch(tmp_path: Path) -> None:
    odd = "# coding: latin-1\r\nfrom mcp_bindgen.v2025_11_25 import types\r\nx = '\xe4'\x0c\n\ty = 1".replace(
        "\n\t", "\r\n"
    )
    folder = project(tmp_path / "weather")
    (folder / "src/weather/odd.py").write_bytes(odd.encode("latin-1"))
    before = snapshot(folder)
    shutil.copytree(folder, tmp_path / "other")
    command = [str(Path(sys.executable).with_name("mcp-bindgen")), "upgrade", str(folder), "--to", "2026-07-28"]
    done = subprocess.run([*command, "--dry-run"], capture_output=True)
    assert (done.returncode, b"(nothing is written)" in done.stderr) == (0, True), done.stderr
    assert snapshot(folder) == before
    applied = subprocess.run(["git", "apply", "--whitespace=nowarn"], input=done.stdout, cwd=tmp_path / "other")
    assert applied.returncode == 0
    upgraded(folder)
    assert snapshot(tmp_path / "other") == snapshot(folder) != before


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (None, ["--to", "2025-11-52"], "there is no revision '2025-11-52'; did you mean 2025-11-25?"),
        (None, ["--to", "2026-07-28", "--from", "2024-11-05"], "the project does not speak 2024-11-05"),
        (None, ["--to", "2026-07-28", "--from", "x"], "there is no revision 'x'"),
        (None, ["--to", "2026-07-28", "--python", "/no/such/python"], "/no/such/python: cannot be run"),
        (lambda folder: (folder / "pyproject.toml").unlink(), ["--to", "2026-07-28"], "has no pyproject.toml"),
        (
            lambda folder: (folder / "src").rename(folder.parent / "s") and (folder / "src").symlink_to("../s"),
            ["--to", "2026-07-28"],
            "is a link to a folder elsewhere",
        ),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(
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


def test_generated_modules_elsewhere_are_left_to_their_command(tmp_path: Path) -> None:
    client = (
        "# Generated by mcp-bindgen for MCP 2025-11-25. Do not edit: sha256 0123456789abcdef.\n"
        "#\n"
        "# From: a server\n"
        "# Regenerate with: mcp-bindgen client --from X --out Y\n"
        "from mcp_bindgen.v2025_11_25 import Client\n"
    )
    folder = project(tmp_path / "weather", src__weather__other=client)
    said = upgraded(folder, code=1)
    other = folder / "src/weather/other.py"
    assert f"left       {other}:5 is generated; regenerate with: mcp-bindgen client --from X --out Y" in said
    assert other.read_text() == client


def test_only_imports_of_scripts_are_run_and_nothing_else(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    script = f"open({str(trace)!r}, 'a').write(__name__ + ' ')\n"
    folder = project(tmp_path / "weather", deploy=script, tests__tool=script, src__weather__seen=script)
    (folder / "src/weather/__main__.py").write_text("from mcp_bindgen.v2025_11_25.types import Tool\n" + script)
    upgraded(folder)
    assert set(trace.read_text().split()) == {"weather.seen"}
    gone = "from mcp_bindgen.v2026_07_28.types import InputRequiredResult\n"
    (folder / "src/weather/__main__.py").write_text(gone + script)
    assert f"left       {folder}/src/weather/__main__.py:1 ImportError" in upgraded(folder, to="2025-11-25", code=1)


def test_python_does_not_run_what_it_compiled_before(tmp_path: Path) -> None:
    folder = project(tmp_path / "weather")
    show = "import weather.server as s; print(s.types.__name__)"
    assert OLD in python(show, folder / "src")
    times = (folder / "src/weather/server.py").stat()
    upgraded(folder)
    os.utime(folder / "src/weather/server.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert NEW in python(show, folder / "src")
