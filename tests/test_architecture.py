"""Imports between packages, the cost of an import, and rules for every file."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from mcp_bindgen.ir import build
from mcp_bindgen.ir.model import Method
from mcp_bindgen.spec import Store
from tests.harness.commands import ROOT, SETTINGS, SOURCE_ROOTS
from tests.harness.effort import selection
from tests.harness.lines import code_lines

NAMESPACE = "mcp_bindgen"
ROOTS = {name: ROOT / name / NAMESPACE for name in SOURCE_ROOTS}
GENERATED = ROOTS["generated"]
WINGS: Mapping[str, set[str]] = {
    "runtime": set(),
    "generator": {"runtime"},
    "features": {"runtime"},
    "workbench": {"runtime", "generator", "features"},
}
"""Wing -> the wings that it may import."""

REVISIONS = sorted(path.name for path in GENERATED.iterdir() if path.name.startswith("v"))
MODULES = sorted(path for root in ROOTS.values() for path in root.rglob("*.py"))
PACKAGES = {path.name: wing for wing in WINGS for path in ROOTS[wing].iterdir() if any(path.glob("*.py"))}
"""Package -> its wing."""

CARRYING = [path for path in MODULES if ROOTS["runtime"] in path.parents or ROOTS["features"] in path.parents]
PROGRAMS = {name for name, wing in PACKAGES.items() if wing in ("generator", "workbench")}
HEAVY = {"datamodel_code_generator", "jinja2", "black", "typer", "rich", "pydantic", "anyio"}

MAX_BARE_ANY_SHARE = 0.04
MAX_GETATTR_WITH_DEFAULT = 40
MAX_VARS = 5
"""Share of parameters annotated with a bare `Any`, and numbers of calls that escape types."""

MAX_STDIO_MODULES = 37
MAX_STDIO_LINES = 3515
MAX_APP_MODULES = 48
MAX_APP_LINES = 5265
"""Modules of this project, and their lines of code, that a stdio server has loaded once it has listed its tools."""

NAMES_METHODS = ("runtime/protocol/methods.py", "app/", "bridging/", "extensions/")
"""Places that may name methods: one module of the kernel, features that depend on tools, engines."""

BUDGET = re.compile(r"^\| `(\w+)` \|.*\| ([\d,]+) \|$", re.MULTILINE)
"""Row of a package in the README of its wing: its name, and its budget of lines of code."""

REGISTRIES = re.compile(r"(pypi|pythonhosted|npmjs|yarnpkg|crates|anaconda|golang)\.(org|com|io)\b")
PLACES = re.compile(r"(?<![\w./])/(?:work|root|tmp|Users|home/\w+|var/folders)/|\b[A-Z]:\\Users\b")


def name_of(path: Path) -> str:
    """Return the dotted name of a module of this project, without the namespace."""
    root = next(root for root in ROOTS.values() if root in path.parents)
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> set[str]:
    """Return the modules of this project that a module imports, as dotted names without the namespace."""
    package = name_of(path.parent / "__init__.py").split(".")
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = [NAMESPACE, *package][: len(package) + 2 - node.level] if node.level else []
            found.add(".".join([*above, *([node.module] if node.module else [])]))
    return {name.removeprefix(f"{NAMESPACE}.") for name in found if name.startswith(f"{NAMESPACE}.")}


@dataclass
class Source:
    """Facts about a module, from a single pass over its syntax tree.

    Attributes:
        texts: Strings, except docstrings.
        lines: Number of lines, except blank lines, comments and docstrings.
        annotated: Number of parameters with an annotation.
        bare: Number of these annotations that are `Any`.
        calls: Name and number of arguments -> number of such calls.
    """

    texts: set[str] = field(default_factory=set[str])
    lines: int = 0
    annotated: int = 0
    bare: int = 0
    calls: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])


@cache
def source(path: Path) -> Source:
    """Read a module."""
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    found, docs = Source(), set[ast.AST]()
    for node in ast.walk(tree):  # parents come before their children
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                docs.add(node.value)
            case ast.Constant(value=str(said)) if node not in docs:
                found.texts.add(said)
            case ast.arg(annotation=ast.expr() as annotation):
                found.annotated += 1
                found.bare += isinstance(annotation, ast.Name) and annotation.id == "Any"
            case ast.Call(func=ast.Name(id=name)):
                found.calls[name, len(node.args)] += 1
            case _:
                pass
    found.lines = code_lines(text, tree)
    return found


def undocumented(path: Path) -> Iterator[str]:
    """Yield the public names of a module that have no docstring."""
    tree = ast.parse(path.read_text("utf-8"))
    if ast.get_docstring(tree) is None:
        yield "the module"
    pending = [(node, "") for node in tree.body]
    while pending:
        node, prefix = pending.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            overloads = any(isinstance(part, ast.Name) and part.id == "overload" for part in node.decorator_list)
            if ast.get_docstring(node) is None and not overloads:
                yield prefix + node.name
            if isinstance(node, ast.ClassDef):
                pending += [(inner, f"{node.name}.") for inner in node.body]


def after(code: str) -> set[str]:
    """Return the modules that a fresh Python process has loaded after `code`."""
    show = "import sys, json; print(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", f"{code}\n{show}"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(ran.stdout))


def revisions(modules: set[str]) -> set[str]:
    names = {name.split(".")[1] for name in modules if name.startswith(f"{NAMESPACE}.")}
    return names & set(REVISIONS)


def files() -> list[Path]:
    """Return the files of the repository, including new files."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


@cache
def protocol_methods(package: str) -> tuple[Method, ...]:
    """Return the methods of a revision."""
    return build(Store().effective(package.removeprefix("v").replace("_", "-"))).methods


def test_the_modules_of_the_repository_are_found() -> None:
    assert len(REVISIONS) == 5
    assert {name_of(path) for path in MODULES} >= {"cli.app", "ir.passes", "runtime", "app", "v2025_11_25.types"}


def test_imports_follow_the_import_contracts() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout


def test_the_import_contracts_cover_every_package() -> None:
    settings = SETTINGS["tool"]["importlinter"]
    assert set(settings["root_packages"]) == {f"{NAMESPACE}.{name}" for name in PACKAGES}
    contracts = {one["type"]: one for one in settings["contracts"]}
    layers, circles = contracts["layers"], contracts["acyclic_siblings"]
    (alone,) = [one for one in settings["contracts"] if one["name"] == "The generator stands on the runtime alone"]
    wings = {f"{NAMESPACE}.{name}": wing for name, wing in PACKAGES.items()}
    assert set(alone["source_modules"]) == {name for name, wing in wings.items() if wing == "generator"}
    assert set(alone["forbidden_modules"]) == {
        name for name, wing in wings.items() if wing in ("features", "workbench")
    }
    assert {name for layer in layers["layers"] for name in layer.split(" | ")} == set(settings["root_packages"])
    assert set(circles["ancestors"]) == set(settings["root_packages"])


def test_every_list_of_source_roots_in_pyproject_has_all_of_them() -> None:
    """Tests, the site, mutants and the checks of distributions read the list of `tests.harness.commands`."""
    folders = {path.parent.name for path in ROOT.glob(f"*/{NAMESPACE}")}
    assert set(SOURCE_ROOTS) == folders == {*WINGS, "generated"}
    tools = SETTINGS["tool"]
    wheel, pyright = tools["hatch"]["build"]["targets"]["wheel"], tools["pyright"]
    assert {name.removesuffix(f"/{NAMESPACE}") for name in wheel["only-include"]} == folders
    assert set(wheel["sources"]) == folders <= set(pyright["extraPaths"])
    assert {*tools["coverage"]["run"]["source"], "generated"} == folders
    more = {
        "mypy.files": tools["mypy"]["files"],
        "mypy.mypy_path": tools["mypy"]["mypy_path"],
        "pyright.include": pyright["include"],
        "pyright.strict": pyright["strict"],
        "ruff.src": tools["ruff"]["src"],
    }
    assert {setting: missing for setting, listed in more.items() if (missing := folders - {*listed})} == {}


@pytest.mark.parametrize("wing", WINGS)
def test_a_wing_imports_only_the_wings_below_it(wing: str) -> None:
    for path in ROOTS[wing].rglob("*.py"):
        wings = {PACKAGES[name.split(".")[0]] for name in imports(path) if name.split(".")[0] in PACKAGES}
        assert wings <= {wing, *WINGS[wing]}, path


@pytest.mark.parametrize("wing", WINGS)
def test_the_readme_of_a_wing_lists_its_packages_and_they_keep_to_their_budgets(wing: str) -> None:
    text = (ROOT / wing / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 40
    budgets = {name: int(limit.replace(",", "")) for name, limit in BUDGET.findall(text)}
    assert set(budgets) == {name for name, owner in PACKAGES.items() if owner == wing}
    for name, budget in budgets.items():
        lines = sum(source(path).lines for path in (ROOTS[wing] / name).rglob("*.py"))
        advice = "raise it there if users gain a capability and nothing can go"
        assert lines <= budget, (
            f"{name} has {lines} lines of code, its budget in {wing}/README.md is {budget}; {advice}"
        )


def test_the_runtime_is_typed() -> None:
    sources = list(map(source, CARRYING))
    calls = sum((each.calls for each in sources), Counter[tuple[str, int]]())
    assert sum(each.bare for each in sources) <= MAX_BARE_ANY_SHARE * sum(each.annotated for each in sources)
    assert calls["getattr", 3] <= MAX_GETATTR_WITH_DEFAULT
    assert calls["vars", 1] <= MAX_VARS


@pytest.mark.parametrize("package", sorted(name for name, wing in PACKAGES.items() if wing in ("runtime", "features")))
def test_the_docstring_of_a_package_lists_its_imports(package: str) -> None:
    folder = ROOTS[PACKAGES[package]] / package
    said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
    listed = re.search(r"Imports (`[a-z_`, and\n]+`)", said)
    nodes = [node for path in folder.rglob("*.py") for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    names = [str(node.module) for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    names += [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    imported = {name.split(".")[1] for name in names if name.startswith(f"{NAMESPACE}.")} - {package}
    assert imported == set(re.findall(r"`(\w+)`", listed[1] if listed else ""))


WRITES = {"cli.terminal", "cli"}
"""Modules that may write to stdout and stderr; `cli` is a program whose output is captured."""


def writers(path: Path) -> Iterator[str]:
    """Yield the calls of a module that write to stdout or stderr or create a console, except `isatty` and `fileno`."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            stream, _, last = name.rpartition(".")
            is_stream = re.match(r"sys\.(__)?std(out|err)", stream) and last not in ("isatty", "fileno")
            if name == "print" or last in ("echo", "secho", "Console", "print_exc") or is_stream:
                yield name


@pytest.mark.full
def test_one_module_writes_to_the_terminal() -> None:
    programs = [path for wing in ("generator", "workbench") for path in ROOTS[wing].rglob("*.py")]
    found = {name_of(path): list(writers(path)) for path in programs if name_of(path) not in WRITES}
    assert {name: places for name, places in found.items() if places} == {}


def test_calls_that_write_to_the_terminal_are_found(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("print(1)\ntyper.echo(1)\nsys.stdout.write('')\nrich.Console()\nif sys.stdin.isatty(): pass\n")
    assert list(writers(file)) == ["print", "typer.echo", "sys.stdout.write", "rich.Console"]


def test_the_runtime_names_no_revision_and_no_method() -> None:
    for path in CARRYING:
        found = source(path).texts
        assert not [text for text in found if re.search(r"\b20\d\d-\d\d-\d\d\b", text)], path
        if not any(f"/{NAMESPACE}/{place}" in path.as_posix() for place in NAMES_METHODS):
            assert not found & names_of_methods(), path


@cache
def names_of_methods() -> set[str]:
    """Return the names of methods and of their stubs, except ordinary words."""
    from mcp_bindgen.emit.python import naming

    methods = [method for revision in REVISIONS for method in protocol_methods(revision)]
    stubs = [naming.stub(method.definition, method.kind) for method in methods]
    named = {*(method.name for method in methods), *stubs, *(f"on_{stub}" for stub in stubs)}
    return {name for name in named if "/" in name or "_" in name or name in ("initialize", "ping")}


@pytest.mark.parametrize("revision", REVISIONS)
def test_bindings_import_only_the_runtime_and_themselves(revision: str) -> None:
    for path in (GENERATED / revision).glob("*.py"):
        assert {name for name in imports(path) if name.split(".")[0] != revision} <= {"runtime", "runtime.abi"}, path


@pytest.mark.parametrize("root", ROOTS.values(), ids=lambda root: root.parent.name)
def test_the_namespace_package_has_no_init_module(root: Path) -> None:
    assert not (root / "__init__.py").exists()
    assert all((path / "__init__.py").exists() for path in root.iterdir() if any(path.glob("*.py")))


@pytest.mark.full
@pytest.mark.parametrize("revision", REVISIONS)
def test_importing_a_revision_loads_no_heavy_packages(revision: str) -> None:
    loaded = after(f"import {NAMESPACE}.{revision}")
    assert revisions(loaded) == {revision}
    assert not loaded & HEAVY
    assert not {f"{NAMESPACE}.{part}" for part in PROGRAMS} & loaded


@pytest.mark.full
@pytest.mark.parametrize("revision", REVISIONS)
def test_importing_the_types_of_a_revision_loads_no_other_revision(revision: str) -> None:
    loaded = after(f"from {NAMESPACE}.{revision} import Client, Server, dispatcher, errors, methods, types")
    assert revisions(loaded) == {revision}
    assert "pydantic" in loaded
    assert not loaded & (HEAVY - {"pydantic", "anyio"})
    assert not {f"{NAMESPACE}.{part}" for part in PROGRAMS} & loaded


def test_importing_the_runtime_loads_no_revision_and_no_heavy_packages() -> None:
    loaded = after(f"import {NAMESPACE}.runtime")
    assert not revisions(loaded)
    assert not loaded & HEAVY


@pytest.mark.full
@pytest.mark.parametrize(
    "command",
    [
        *("--version", "methods 2025-11-25", "show 2025-11-25 Tool", "diff 2025-06-18 2025-11-25"),
        "history Tool",
        "schema list",
    ],
)
def test_a_command_loads_only_the_packages_that_it_needs(command: str) -> None:
    needed = set[str]() if command == "--version" else {"pydantic"}
    names_stubs = command.startswith(("methods", "show"))  # they avoid the names of the runtime's classes
    if command.startswith("history"):
        needed.add("jsonschema_rs")  # the newest revision has patterns
    if names_stubs:
        needed.add("anyio")
    loaded = after(
        "import contextlib, io, sys\n"
        f"sys.argv = ['mcp-bindgen', *{command.split()}]\n"
        "from mcp_bindgen.cli import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "    main()\n"
    )
    assert loaded & (HEAVY | {"jsonschema_rs", "tomlkit", "mypy"}) - needed == {"typer"}
    runtime = {name.removeprefix(f"{NAMESPACE}.runtime") for name in loaded if name.startswith(f"{NAMESPACE}.runtime")}
    known = {"", ".bindings", ".entry_points", ".home", ".lazy", ".logs", ".model", ".model.json_types"}
    assert names_stubs or runtime <= known


@pytest.mark.full
def test_modules_of_commands_load_neither_the_emitter_nor_the_type_checker() -> None:
    names = [f"{NAMESPACE}.commands.{name}" for name in ("call", "contract", "dev", "gateway", "lock", "mock", "tap")]
    assert not after(f"import {', '.join(names)}") & {"datamodel_code_generator", "mypy"}


@pytest.mark.full
@pytest.mark.parametrize("revision", REVISIONS)
def test_models_are_built_on_first_use(revision: str) -> None:
    after(
        f"from {NAMESPACE}.{revision} import Client, Server, dispatcher, types\n"
        "models = {name: getattr(types, name) for name in types.__all__ if isinstance(getattr(types, name), type)}\n"
        "assert len(models) > 100\n"
        "assert [name for name, model in models.items() if model.__pydantic_complete__] == []\n"
        "types.Tool(name='echo', input_schema=types.ToolInputSchema())\n"
        "built = {name for name, model in models.items() if model.__pydantic_complete__}\n"
        "assert built == {'Tool', 'ToolInputSchema'}, built"
    )


def test_public_names_are_documented() -> None:
    generated = selection(REVISIONS[-1:], REVISIONS)
    modules = [path for path in MODULES if GENERATED not in path.parents or name_of(path).split(".")[0] in generated]
    found = {name_of(path): list(undocumented(path)) for path in modules}
    assert {name: missing for name, missing in found.items() if missing} == {}


def loaded(program: str) -> tuple[list[str], int]:
    """Return the modules that a server over stdio loads to list its tools, and the lines of handwritten ones."""
    client = {"capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    hello = {"protocolVersion": REVISIONS[3].removeprefix("v").replace("_", "-"), **client}
    messages = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {**hello, "clientInfo": {"name": "c", "version": "1"}},
        },
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    sent = "".join(json.dumps(message) + "\n" for message in messages)
    report = "import atexit, sys\natexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
    ran = subprocess.run(
        [sys.executable, "-c", report + program], input=sent, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1])["result"]["tools"]
    names = [name for name in ran.stderr.splitlines()[-1].split() if name.startswith(f"{NAMESPACE}.")]
    lines = {f"{NAMESPACE}.{name_of(path)}": source(path).lines for path in CARRYING}
    return names, sum(lines.get(name, 0) for name in names)


def handwritten(names: list[str]) -> list[str]:
    """Return the modules that are not generated."""
    return [name for name in names if not re.match(rf"{NAMESPACE}\.(v2|bridges)", name)]


def test_a_stdio_server_loads_few_modules() -> None:
    program = f"""
from {NAMESPACE}.runtime import run
from {NAMESPACE}.{REVISIONS[3]} import Server, types

class Tools(Server):
    info = types.Implementation(name="tools", version="1")

    async def list_tools(self, params, ctx):
        return types.ListToolsResult(tools=[types.Tool(name="tool", input_schema=types.ToolInputSchema())])

run(Tools())
"""
    names, lines = loaded(program)
    own = handwritten(names)
    assert f"{NAMESPACE}.runtime.abi" in own
    assert len(own) <= MAX_STDIO_MODULES, sorted(own)
    assert lines <= MAX_STDIO_LINES, "import lazily what the first call does not need"
    assert {name.split(".")[1] for name in own} == {"runtime"}


def test_the_first_app_loads_few_modules_and_one_revision() -> None:
    (program,) = (
        block for block in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S) if "App(" in block
    )
    names, lines = loaded(program)
    own = handwritten(names)
    assert len(own) <= MAX_APP_MODULES, sorted(own)
    assert lines <= MAX_APP_LINES, "import lazily what an App without tasks, resources and scopes does not need"
    assert {name.split(".")[1] for name in own} == {"app", "runtime"}
    assert {name.split(".")[1] for name in names if name not in own} == {"bridges", REVISIONS[3]}


@pytest.mark.full
@pytest.mark.parametrize("pattern", [REGISTRIES, PLACES], ids=["registries", "places"])
def test_no_file_names_a_registry_or_a_local_path(pattern: re.Pattern[str]) -> None:
    for path in files():
        assert pattern.search(path.read_text("utf-8", errors="ignore")) is None, path


@pytest.mark.parametrize(
    ("pattern", "bad", "good"),
    [
        (REGISTRIES, "see https://pypi." + "org/project/mcp", "pypi organises"),
        (REGISTRIES, "files.pythonhosted." + "org", "example.org"),
        (PLACES, "cd /work" + "/main", "https://example.org/work/main"),
        (PLACES, "'/home" + "/ada/x'", "file:///home/ada/x"),
        (PLACES, "`/tmp" + "/x`", "a/tmp/x"),
    ],
)
def test_the_patterns_find_registries_and_local_paths(pattern: re.Pattern[str], bad: str, good: str) -> None:
    assert pattern.search(bad)
    assert not pattern.search(good)


def test_public_attributes_of_runtime_objects_are_reserved_for_stubs() -> None:
    from mcp_bindgen.emit.python import naming
    from mcp_bindgen.runtime import Client, Context, Server

    classes = {base for side in (Client, Context, Server) for base in side.__mro__ if base is not object}
    trees = [ast.parse(Path(inspect.getfile(base)).read_text("utf-8")) for base in classes]
    bodies = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    nodes = [node for body in bodies if body.name in {one.__name__ for one in classes} for node in ast.walk(body)]
    stored = (node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
    own = {node.attr for node in stored if isinstance(node.value, ast.Name) and node.value.id == "self"}
    assert {"origin", "request_id"} <= {name for name in own if not name.startswith("_")} <= naming.inherited()
