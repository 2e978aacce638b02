"""`migrate` finds all code that has to change, and nothing else."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from mcp_bindgen.migrate.checker import check, exclusive_cache
from mcp_bindgen.spec import Store
from tests.harness.commands import bindgen, inside, save
from tests.harness.effort import cases
from tests.harness.package_api import offer
from tests.harness.package_differences import Truth, uses_of_everything

REVISIONS = list(Store().pins)


def found(old: str, new: str, path: Path, *options: str) -> list[dict[str, Any]]:
    """Return the reported uses."""
    done = inside("migrate", old, new, path, "--format", "json", *options)
    uses: list[dict[str, Any]] = json.loads(done.stdout)["uses"]
    assert done.stderr == ""
    assert done.returncode == (1 if uses else 0)
    return uses


# --- all differences between two packages, and nothing else --------------------------------------------------------


@cache
def found_in_everything(old: str, new: str) -> list[dict[str, Any]]:
    """Return the reported uses of a module that uses all of the old bindings."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "everything.py")
        file.write_text(uses_of_everything(old), "utf-8")
        return found(old, new, file)


STEPS = [*pairwise(REVISIONS), (REVISIONS[-1], REVISIONS[0])]


@pytest.mark.parametrize(("old", "new"), cases(STEPS, quick=[REVISIONS[-2:]]))
def test_all_removed_names_and_only_real_differences_are_reported(old: str, new: str) -> None:
    uses = found_in_everything(old, new)
    classes = [use for use in uses if use["kind"] == "renamed" and re.fullmatch(r"types\.\w+", use["name"])]
    renames = {use["name"].removeprefix("types."): use["new"] for use in classes}
    assert set(renames.values()) <= offer(new).classes.keys() | offer(new).aliases.keys()
    truth = Truth(offer(old), offer(new), renames)
    names = {use["name"] for use in uses if use["kind"] != "repeated" and "ask_params" not in (use["new"] or "")}
    assert (sorted(names - truth.all()), sorted(truth.gone() - names)) == ([], [])
    assert names


# --- how code may use the bindings ---------------------------------------------------------------------------------

OLD, NEW = "2025-06-18", "2025-11-25"


def uses(code: str, tmp_path: Path, old: str = OLD, new: str = NEW, *options: str) -> list[str]:
    """Return line, column and name of each use in a file, with a question mark if it is uncertain."""
    return uses_in_each([code], tmp_path, old, new, *options)[code]


def uses_in_each(
    codes: Sequence[str], tmp_path: Path, old: str = OLD, new: str = NEW, *options: str
) -> dict[str, list[str]]:
    """Return the uses for each of several files, from one run."""
    files = {tmp_path / f"code{number}.py": code for number, code in enumerate(codes)}
    for file, code in files.items():
        file.write_text(code, "utf-8")
    uses: dict[str, list[str]] = {code: [] for code in codes}
    for use in found(old, new, tmp_path if len(files) > 1 else next(iter(files)), *options):
        place = f"{use['line']}:{use['column']} {use['name']}"
        uses[files[tmp_path / use["file"]]].append(place)
    return uses


def test_uses_are_found_for_each_form_of_import_and_positional_calls(tmp_path: Path) -> None:
    expected = {
        "from mcp_bindgen.v2025_06_18 import types\nx = types.JSONRPCError()\n": "2:11",
        "from mcp_bindgen.v2025_06_18 import types as mcp\nx = mcp.JSONRPCError()\n": "2:9",
        "import mcp_bindgen.v2025_06_18 as b\nx = b.types.JSONRPCError()\n": "2:13",
        "import mcp_bindgen.v2025_06_18.types\nx = mcp_bindgen.v2025_06_18.types.JSONRPCError()\n": "2:35",
        "import mcp_bindgen.v2025_06_18.types as t\nx = t.JSONRPCError()\n": "2:7",
        "from mcp_bindgen import v2025_06_18 as b\nx = b.types.JSONRPCError()\n": "2:13",
        "from mcp_bindgen.v2025_06_18.types import JSONRPCError as E\nx = E()\n": "1:43",
        "from mcp_bindgen.v2025_06_18.types import *\nx = JSONRPCError()\n": "2:5",
        "from mcp_bindgen.v2025_06_18 import types as mcp\ndef f(x: 'mcp.JSONRPCError'): ...\n": "2:15",
        "from mcp_bindgen.v2025_06_18 import types as mcp\nx = ä = mcp.JSONRPCError\n": "2:13",
        "def f():\n    from mcp_bindgen.v2025_06_18 import types\n    return [types.JSONRPCError]\n": "3:19",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from mcp_bindgen.v2025_06_18 import types\n"
        "def f(x: 'list[types.JSONRPCError]'): ...\n": "4:22",
    }
    once = "from mcp_bindgen.v2025_06_18.types import JSONRPCError, Tool\n\ndef f(x: JSONRPCError, y: Tool): ...\n"
    by_position = (
        "from mcp_bindgen.v2025_06_18 import Context\n"
        "async def f(ctx: Context, *more):\n    await ctx.elicit('really?', {})\n    await ctx.elicit(*more)\n"
    )
    found = uses_in_each([*expected, once, by_position], tmp_path)
    assert found.pop(by_position) == ["3:15 Context.elicit"]
    assert found.pop(once) == ["1:43 types.JSONRPCError"]
    assert found == {code: [f"{where} types.JSONRPCError"] for code, where in expected.items()}


@pytest.mark.full
def test_a_positional_argument_that_became_keyword_only_is_reported(tmp_path: Path) -> None:
    draft, facts = tmp_path / "draft.json", tmp_path / "facts.toml"
    save(draft, {"$defs": dict(Store().effective("2025-11-25").definitions)})
    facts.write_text('[arguments]\n"tools/call" = ["name"]\n', "utf-8")
    head = (
        "from mcp_bindgen.v2025_11_25 import Client\nasync def f(client: Client, more: tuple[dict[str, int]]) -> None:"
    )
    code = f"{head}\n    await client.call_tool('x', {{}})\n    await client.call_tool('x', *more)\n"
    given = tmp_path / "code"
    given.mkdir()
    found = uses(code, given, "2025-11-25", str(draft), "--semantics", str(facts))
    assert found == ["3:33 Client.call_tool(arguments=)", "4:11 "], "`*more` gets no name: the checker's message stays"


@pytest.mark.full
def test_arguments_that_no_overload_of_a_call_takes_are_reported_by_name(tmp_path: Path) -> None:
    code = (
        "from mcp_bindgen.v2026_07_28 import Client\nasync def f(client: Client) -> None:\n"
        "    await client.call_tool('x', {}, request_state='y')\n    await client.call_tool()\n"
    )
    found = uses(code, tmp_path, "2026-07-28", "2025-11-25")
    assert found == ["3:37 Client.call_tool(request_state=)"], "the second call was wrong before"


@pytest.mark.full
def test_an_incompatible_override_is_reported_at_its_name(tmp_path: Path) -> None:
    code = (
        "from mcp_bindgen.v2025_11_25 import Context, Server, types as mcp\nclass Own(Server):\n"
        "    async def on_initialized(self, params: mcp.NotificationParams, ctx: Context) -> None: ...\n"
    )
    assert uses(code, tmp_path, "2025-11-25", "2025-06-18") == ["3:15 Server.on_initialized"]


@pytest.mark.full
def test_the_package_option_selects_custom_bindings(tmp_path: Path) -> None:
    code = "from acme.mcp import types\nx = types.JSONRPCError\n"
    assert uses(code, tmp_path) == []
    assert uses(code, tmp_path, OLD, NEW, "--package", "acme.mcp") == ["2:11 types.JSONRPCError"]


HEAD = "from mcp_bindgen.v2025_11_25 import Client, Context, Server, types as mcp\n"


@pytest.mark.full
def test_a_use_is_found_only_if_the_type_of_the_value_is_known(tmp_path: Path) -> None:
    codes = [
        "def f(tool: mcp.Tool): return tool.execution",
        "def f(tools: list[mcp.Tool]):\n    for tool in tools:\n        tool.execution",
        "def f(tools: dict[str, mcp.Tool]):\n    return [tool.execution for name, tool in tools.items()]",
        "def f(tool: mcp.Tool | None):\n    if tool:\n        tool.execution",
        "def f(tool: object):\n    assert isinstance(tool, mcp.Tool)\n    tool.execution",
        "def f(tool: object):\n    if not isinstance(tool, mcp.Tool):\n        return\n    tool.execution",
        "def f(tool):\n    match tool:\n        case mcp.Tool() as it:\n            it.execution",
        "def f(tool):\n    match tool:\n        case mcp.Tool(execution=None):\n            pass",
        "async def f(client: Client):\n    (await client.list_tools()).tools[0].execution",
        "async def f(client: Client):\n    async for tool in client.iter_tools():\n        tool.execution",
        "async def f():\n    async with Client.connect(None) as it:\n"
        "        async for tool in it.iter_tools():\n            tool.execution",
        "class Own(Client):\n    async def f(self):\n        for t in (await self.list_tools()).tools: t.execution",
        "class App:\n    def __init__(self, client: Client):\n        self.client = client\n"
        "    async def f(self):\n        return (await self.client.list_tools()).tools[0].execution",
        "def tool() -> mcp.Tool: ...\ntool().execution",
        "async def tool() -> mcp.Tool: ...\nasync def f():\n    (await tool()).execution",
        "x = mcp.Tool.model_validate({})\nx.execution",
        "x = mcp.Tool(name='x', input_schema={}).model_copy()\nx.execution",
        "class Own(mcp.Tool): ...\nOwn().execution",
        "f = lambda: mcp.Tool.model_validate_json('').execution",
    ]
    unclear = [
        "def f(tool): return tool.execution",
        "def f(tool: object): return tool.execution",
        "x = mcp.Tool.model_validate({})\nx = object()\nx.execution",
        "execution = 1\nexecution",
        "class Tool: execution = 1\nTool().execution",
        "def f(client): return client.initialize()",
        "def initialize(self, params, ctx): ...",
        "class Other:\n    def initialize(self, params, ctx): ...",
        "class Own(Client):\n    def initialize_(self): ...",
    ]
    unannotated = (
        f"{HEAD}class Own(Server):\n    def call_tool(self, params, ctx):\n        params.task\n"
        "        ctx.elicit('', {})\n    async def list_prompts(self, page, context) -> mcp.ListPromptsResult:\n"
        "        context.elicit('', {})\n        return await super().list_prompts(page, context)\n"
        "    def unsubscribe(self, params, ctx):\n        super().unsubscribe(params, ctx)\n"
    )
    every = [*(f"{HEAD}{code}\n" for code in codes + unclear), unannotated]
    found = uses_in_each(every, tmp_path, "2025-11-25", "2026-07-28")
    assert found.pop(unannotated) == [
        "3:9 Server.call_tool",  # it asks the client, so it runs again
        "4:16 types.CallToolRequestParams.task",
        "5:13 Context.elicit",
        "6:15 Server.list_prompts",
        "7:17 Context.elicit",
        "9:9 Server.unsubscribe",
        "10:17 Server.unsubscribe",
    ], "handlers without annotations take what the bindings say"
    assert {code: found.pop(f"{HEAD}{code}\n") for code in unclear} == {code: [] for code in unclear}
    for code, uses in found.items():
        assert {use.split(" ")[1] for use in uses} == {"types.Tool.execution"}, code


@pytest.mark.full
def test_the_encoding_of_a_file_is_respected(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_bytes(f"# coding: latin-1\n{TASK}'\u00e4'; mcp.Task\n".encode("latin-1"))
    assert [(use["line"], use["column"]) for use in found("2025-11-25", "2026-07-28", tmp_path)] == [(3, 5), (4, 10)]


@pytest.mark.full
def test_uses_are_found_through_imports_between_modules(tmp_path: Path) -> None:
    package = tmp_path / "src" / "acme"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from .protocol import mcp\n")
    (package / "protocol.py").write_text("from mcp_bindgen.v2025_11_25 import Server, types as mcp\n")
    (package / "base.py").write_text("from acme.protocol import Server\nclass Base(Server): ...\n")
    (package / "server.py").write_text(
        "from . import mcp\nfrom .base import Base\nclass Own(Base):\n    def initialize(self, params, ctx): ...\n"
        "x = mcp.Task\n"
    )
    assert [use["name"] for use in found("2025-11-25", "2026-07-28", tmp_path)] == ["Server.initialize", "types.Task"]


TASK = "from mcp_bindgen.v2025_11_25 import types as mcp\nmcp.Task\n"


@pytest.mark.full
def test_modules_may_have_any_name_and_location(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("one", "two", "test", "src/acme/inner"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("types.py", "builtins.py", "stub.py", "stub.pyi", "one/main.py", "two/main.py", "test/__init__.py"):
        (tmp_path / file).write_text(TASK)
    (tmp_path / "src" / "acme" / "inner" / "base.py").write_text(TASK)
    (tmp_path / "src" / "acme" / "absolute.py").write_text("from acme.inner import base\nbase.mcp.Task\n")
    (tmp_path / "src" / "acme" / "relative.py").write_text("from .inner.base import mcp\nmcp.Task\n")
    files = sorted(path for path in tmp_path.rglob("*.py*") if path.is_file())
    monkeypatch.chdir(tmp_path)
    assert sorted({tmp_path / use["file"] for use in found("2025-11-25", "2026-07-28", Path())}) == files


@pytest.mark.full
def test_a_file_that_stops_the_type_checker_is_skipped_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(f"from {'.' * 50} import x\n")
    (tmp_path / "good.py").write_text(TASK)
    done = inside("migrate", "2025-11-25", "2026-07-28", tmp_path, code=1)
    assert "good.py" in done.stdout
    assert f"{tmp_path}/bad.py: skipped: is not Python: No parent module" in " ".join(done.stdout.split())


@pytest.mark.full
def test_uses_of_bindings_inside_the_project_are_found(tmp_path: Path) -> None:
    package = tmp_path / "src" / "acme"
    (package / "mcp").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "mcp" / "__init__.py").write_text("# Generated by mcp-bindgen from MCP 1.\n")
    (package / "code.py").write_text("from .mcp import types\nfrom acme.mcp.types import Task\ntypes.Task\n")
    names = found("2025-11-25", "2026-07-28", tmp_path, "--package", "acme.mcp")
    assert [(use["line"], use["name"]) for use in names] == [(2, "types.Task"), (3, "types.Task")]


def test_a_missing_type_checker_is_reported_with_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "code.py").write_text(TASK)
    monkeypatch.setitem(sys.modules, "mypy", None)
    done = inside("migrate", "2025-11-25", "2026-07-28", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("mypy, which is not installed; run: pip install 'mcp-bindgen[generate]'\n")


@pytest.mark.full
def test_the_check_works_with_an_unwritable_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "no-folder").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no-folder"))
    found = check({tmp_path / "code.py": b"x: int = ''\n"}, tmp_path, {})
    assert [(one.line, one.code) for one in found.diagnostics] == [(1, "assignment")]


def test_concurrent_runs_have_separate_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pool = tmp_path / "mcp-bindgen" / "mypy"
    with exclusive_cache("own") as first, exclusive_cache("own") as second:
        assert first is not None
        assert second is not None
        assert first != second
        os.utime(second.parent, (0, 0))  # looks like the cache of a run that was killed long ago
        with exclusive_cache("own") as third:
            assert third not in (first, second)
        assert (first.exists(), second.exists()) == (True, False)
        with exclusive_cache("own") as again, exclusive_cache("own") as fourth:
            assert again == third
            assert fourth is not None
            assert fourth not in (first, third)
    assert len([*pool.iterdir()]) == 3


def test_a_cache_starts_as_a_copy_of_another_kind_but_not_of_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mypy replaces the files of a module one by one: a copy meanwhile could have errors of another text."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for kind, content in [("own", ""), ("old", "own"), ("own", "own"), ("old", "old")]:
        with exclusive_cache(kind) as cache:
            assert cache is not None
            known = cache / "known"
            assert (known.read_text() if known.exists() else "") == content
            known.write_text(kind)
    with exclusive_cache("own"), exclusive_cache("old") as cache:
        assert cache is not None
        assert [*cache.iterdir()] == []


def test_the_cache_of_a_run_that_failed_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(KeyboardInterrupt), exclusive_cache("own"):
        raise KeyboardInterrupt
    assert [*(tmp_path / "mcp-bindgen" / "mypy").iterdir()] == []


@pytest.mark.full
def test_texts_of_the_same_size_and_second_are_distinguished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    write = Path.write_bytes

    def write_at_once(path: Path, content: bytes) -> int:
        size = write(path, content)
        os.utime(path, (1, 1))
        return size

    monkeypatch.setattr(Path, "write_bytes", write_at_once)
    monkeypatch.setattr(Path, "write_text", lambda path, text, encoding: write_at_once(path, text.encode()))
    file = tmp_path / "code.py"
    outcomes = [
        check({file: f"from acme.types import {name}\n".encode()}, tmp_path, {"acme/types.py": f"{known} = 1\n"})
        for name, known in ("AA", "AB", "BB", "BA")
    ]
    assert [[one.code for one in found.diagnostics] for found in outcomes] == [[], ["attr-defined"]] * 2


@pytest.mark.slow
def test_two_runs_that_begin_without_a_cache_report_the_same(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(TASK)
    command = ("migrate", "2025-11-25", "2026-07-28", tmp_path / "code.py")
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(bindgen, *command, XDG_CACHE_HOME=str(tmp_path / "cache")) for _ in range(2)]
    assert [(run.result().returncode, run.result().stderr) for run in runs] == [(1, "")] * 2
    printed = {run.result().stdout for run in runs}
    assert len(printed) == 1
    assert "types.Task" in printed.pop()


# --- files ---------------------------------------------------------------------------------------------------------

GONE = "from mcp_bindgen.v2025_06_18 import types\ntypes.JSONRPCError\n"


@pytest.mark.full
def test_only_the_python_files_of_the_project_are_read(tmp_path: Path) -> None:
    for folder in (".hidden", "node_modules", "venv", "lib", "site-packages"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "code.py").write_text(GONE)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    (tmp_path / "notes.txt").write_text(GONE)
    (tmp_path / "generated.py").write_text(f"# Generated by mcp-bindgen from MCP 1.\n{GONE}")
    assert [Path(use["file"]).relative_to(tmp_path).as_posix() for use in found(OLD, NEW, tmp_path)] == ["lib/code.py"]


BAD = {
    b"def f(:\n": "is not Python",
    b"x = '\xff'\n": "is not Python",
    b"\x00": "is not Python",
    b"x = " + b"(" * 5000 + b")" * 5000: "",
    b"x = " + b"-" * 20000 + b"1\n": "",
    b"x = " + b"+".join([b"1"] * 5000) + b"\n": "is nested too deeply",
}


@pytest.mark.full
def test_files_that_cannot_be_read_are_skipped_with_the_reason(tmp_path: Path) -> None:
    for number, content in enumerate(BAD):
        (tmp_path / f"bad{number}.py").write_bytes(content)
    (tmp_path / "good.py").write_text(GONE)
    done = json.loads(inside("migrate", OLD, NEW, tmp_path, "--format", "json").stdout)
    assert [Path(use["file"]).name for use in done["uses"]] == ["good.py"]
    assert [Path(one["file"]).stem for one in done["skipped"]] == [f"bad{number}" for number in range(len(BAD))]
    assert all(reason in one["reason"] for reason, one in zip(BAD.values(), done["skipped"], strict=True))


def test_a_single_file_must_be_python(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def f(:\n")
    said = inside("migrate", OLD, NEW, tmp_path / "bad.py", code=2).stderr
    assert said == f"error: {tmp_path}/bad.py: is not Python: invalid syntax at line 1; give the path of Python code\n"


# --- reports -------------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_the_text_report_fits_80_columns_and_contains_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("code.py").write_text(GONE)
    done = inside("migrate", OLD, NEW)
    assert done.stdout.startswith("MCP 2025-06-18 -> 2025-11-25: 1 use to change in 1 of 1 file\n\ncode.py ---")
    assert "types.JSONRPCError is types.JSONRPCErrorResponse now\n" in done.stdout
    assert "definition-renamed " in done.stdout
    assert "Import mcp_bindgen.v2025_11_25 instead of mcp_bindgen.v2025_06_18 in code.py:1.\n" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout
    assert done.returncode == 1
    assert [path.name for path in tmp_path.rglob("*")] == ["code.py"]
    assert Path("code.py").read_text() == GONE, "nothing is written"


@pytest.mark.full
def test_the_report_states_that_there_is_nothing_to_change(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("from mcp_bindgen.v2025_06_18 import types\nprint(types.Tool)\n")
    done = inside("migrate", OLD, NEW, tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, f"MCP {OLD} -> {NEW}: nothing to change in 1 file")
    assert inside("migrate", OLD, OLD, tmp_path).stdout == f"MCP {OLD} -> {OLD}: nothing to change in 1 file\n"


@pytest.mark.full
@pytest.mark.parametrize(
    ("code", "imports"),
    [
        ("print()\n", "imports no bindings of mcp-bindgen"),
        ("import mcp_bindgen.v2024_11_05\n", "imports mcp_bindgen.v2024_11_05"),
    ],
)
def test_code_without_the_old_bindings_is_not_reported_as_migrated(tmp_path: Path, code: str, imports: str) -> None:
    (tmp_path / "code.py").write_text(code)
    done = inside("migrate", OLD, NEW, tmp_path)
    title = f"MCP {OLD} -> {NEW}: no bindings of MCP {OLD} found in 1 file, as mcp_bindgen.v2025_06_18 "
    assert " ".join(done.stdout.split()).startswith(title)
    assert imports in done.stdout
    assert json.loads(inside("migrate", OLD, NEW, tmp_path, "--format", "json").stdout)["found"] is False


@pytest.mark.full
def test_advice_depends_on_the_side_that_contains_the_code(tmp_path: Path) -> None:
    call = "await ctx.list_roots(); print(params.task); return mcp.CallToolResult(content=[])"
    (tmp_path / "code.py").write_text(
        f"{HEAD}class Weather(Server):\n"
        "    async def on_initialized(self, params: mcp.NotificationParams, ctx: Context) -> None: ...\n"
        "    async def subscribe(self, params: mcp.SubscribeRequestParams, ctx: Context) -> mcp.EmptyResult: ...\n"
        f"    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context): {call}\n"
        "async def use(client: Client) -> None: await client.subscribe('x:y')\n"
    )
    found = json.loads(inside("migrate", "2025-11-25", "2026-07-28", tmp_path, "--format", "json").stdout)["uses"]
    hints = {one["name"]: one["hint"] for one in found}
    assert hints["Server.on_initialized"] == "Leave the handler out: no client sends it in 2026-07-28."
    assert hints["Server.subscribe"].startswith("Leave the handler out: no client sends it in 2026-07-28. ")
    assert hints["Client.subscribe"].startswith("Leave it out: 2026-07-28 has no such message. ")
    asked = "Ask with `ctx.roots` or `ctx.ask_params(key, params)`: the question travels in the result."
    assert hints["Context.list_roots"] == asked
    assert hints["types.CallToolRequestParams.task"] == "Do without it: the other side does not send it."


@pytest.mark.full
def test_the_github_format_prints_workflow_annotations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a,b.py").write_text(GONE)
    lines = inside("migrate", OLD, NEW, "--format", "github").stdout.splitlines()
    assert lines[0].startswith("::notice title=MCP 2025-06-18 -> 2025-11-25::")
    assert lines[1].startswith("::notice title=MCP 2025-06-18 -> 2025-11-25::Import mcp_bindgen.v2025_11_25 instead ")
    title = "MCP 2025-06-18 -> 2025-11-25%3A definition-renamed"
    assert lines[2].startswith(f"::error file=a%2Cb.py,line=2,col=7,title={title}::types.JSONRPCError is ")
    assert len(lines) == 3


def test_bad_input_is_reported_in_one_line() -> None:
    for arguments, message in [
        ((OLD, NEW, "no-such-folder"), "no-such-folder: there is no such file or folder"),
        ((OLD, "2025-11-52"), "did you mean 2025-11-25?"),
    ]:
        done = inside("migrate", *arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert message in done.stderr


@pytest.mark.full
def test_reported_uses_refer_to_findings_of_diff() -> None:
    reported = found_in_everything("2025-11-25", "2026-07-28")
    findings = json.loads(inside("diff", "2025-11-25", "2026-07-28", "--format", "json").stdout)["comparisons"][0]
    known = {finding["fingerprint"]: finding["rule"] for finding in findings["findings"]}
    known |= {one["fingerprint"]: one["rule"] for finding in findings["findings"] for one in finding["places"]}
    linked = [use for use in reported if use["fingerprint"] is not None]
    assert all(known[use["fingerprint"]] == use["rule"] for use in linked)
    assert len(linked) > 0.9 * len(reported)
