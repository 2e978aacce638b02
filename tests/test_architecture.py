"""What may import what, what an import costs, and the order of the house."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from mcp_bindgen.protocol import build
from mcp_bindgen.protocol.model import Method
from mcp_bindgen.spec import Store

ROOT = Path(__file__).parents[1]
NAMESPACE = "mcp_bindgen"
GENERATOR, RUNTIME, GENERATED = (ROOT / name / NAMESPACE for name in ("generator", "runtime", "generated"))
REVISIONS = sorted(path.name for path in GENERATED.iterdir() if path.name.startswith("v"))
MODULES = sorted(path for root in (GENERATOR, RUNTIME, GENERATED) for path in root.rglob("*.py"))
HANDWRITTEN = [path for path in MODULES if GENERATED not in path.parents]
HEAVY = {"datamodel_code_generator", "jinja2", "black", "typer", "rich", "pydantic", "anyio"}
LONGEST = 430

MAY_IMPORT = {
    "cli": {"install", "scaffold", "bridge", "contract", "diff", "emit", "protocol", "spec", "runtime"},
    "scaffold": {"contract", "diff", "emit", "protocol", "spec", "runtime.contract", "runtime.eras.lifecycle"},
    "install": {"spec"},
    "testing": {"protocol", "spec", "runtime"},
    "contract": {"diff", "emit", "protocol", "spec", "runtime.contract", "runtime.core.model"},
    "diff": {"protocol", "spec"},
    "emit": {
        "bridge",
        "protocol",
        "spec",
        "runtime.core.model",
        "runtime.core.home",
        "runtime.entrypoints.user_bindings",
        "runtime.abi",
    },
    "bridge": {"protocol", "spec"},
    "protocol": {"spec"},
    "spec": {"runtime.core.home"},
}
"""Part of the generator -> the parts, or single modules, of ours that it may import."""

LAYERS = {
    "core": {"core"},
    "storage": {"storage"},
    "bridges": {"bridges", "core"},
    "auth": {"auth", "core", "tasks"},
    "eras": {"eras", "core", "tasks"},
    "endpoint": {"endpoint", "eras", "bridges", "core", "tasks"},
    "transports": {"transports", "endpoint", "bridges", "eras", "core", "tasks"},
    "http": {"http", "storage", "endpoint", "bridges", "eras", "core", "tasks"},
    "entrypoints": {"entrypoints", "auth", "http", "transports", "endpoint", "bridges", "eras", "core", "tasks"},
    "contract": {"contract", "entrypoints", "extensions", "endpoint", "bridges", "eras", "core", "tasks"},
    "extensions": {"extensions", "storage", "endpoint", "bridges", "eras", "core", "tasks"},
    "telemetry": {"telemetry", "eras", "core"},
}
"""Folder of the runtime -> what it may import of it. `tasks` imports nothing, `abi` is for generated code."""

NAMES_METHODS = ("eras", "contract", "extensions")
"""The folders of the runtime that may name methods: the lifecycle, features that are about tools by nature, engines."""

REGISTRIES = re.compile(r"(pypi|pythonhosted|npmjs|yarnpkg|crates|anaconda|golang)\.(org|com|io)\b")
PLACES = re.compile(r"(?<![\w./])/(?:work|root|tmp|Users|home/\w+|var/folders)/|\b[A-Z]:\\Users\b")


def name_of(path: Path) -> str:
    """The dotted name of a module of ours, without the namespace."""
    root = next(root for root in (GENERATOR, RUNTIME, GENERATED) if root in path.parents)
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


@cache
def imports(path: Path) -> set[str]:
    """What a module imports of ours, anywhere in it: dotted names without the namespace."""
    inside = name_of(path).split(".")
    package = inside if path.name == "__init__.py" else inside[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = [NAMESPACE, *package][: len(package) + 2 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("import_module", "lazy"):
            given = [value for one in node.args for value in (one.values if isinstance(one, ast.Dict) else [one])]
            strings = [one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            own = ".".join([NAMESPACE, *package])
            found |= {*strings, *(f"{own}.{one.lstrip('.')}" for one in strings)}
    return {name.removeprefix(f"{NAMESPACE}.") for name in found if name.startswith(f"{NAMESPACE}.")}


def executed(name: str, package: str, known: Iterable[str]) -> Iterator[str]:
    """The modules of ours that Python runs for an import of `name` from inside of `package`.

    A package's `__init__` counts, except for what stands in that package itself: there it runs already.
    """
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        module = ".".join(parts[:end])
        if module in known and not f"{package}.".startswith(f"{module}."):
            yield module


def circles(root: Path) -> list[list[str]]:
    """The modules below `root` that import each other, wherever in a module an import stands."""
    paths = {name_of(path): path for path in root.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, path in paths.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        graph[name] = {other for one in imports(path) for other in executed(one, package, paths)} - {name}
    reach: dict[str, set[str]] = {}
    for name in graph:
        pending = list(graph[name])
        reach[name] = set()
        while pending:
            if (other := pending.pop()) not in reach[name]:
                reach[name].add(other)
                pending += graph[other]
    found = {frozenset(other for other in reach[name] if name in reach[other]) for name in graph if name in reach[name]}
    return sorted(map(sorted, found))


def within(name: str, parts: set[str]) -> bool:
    return any(name == part or name.startswith(f"{part}.") for part in parts)


def undocumented(path: Path) -> Iterator[str]:
    """The public names of a module without a docstring."""
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
    """The modules that a fresh Python has loaded after `code`."""
    show = "import sys, json; print(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", f"{code}\n{show}"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(ran.stdout))


def revisions(modules: set[str]) -> set[str]:
    names = {name.split(".")[1] for name in modules if name.startswith(f"{NAMESPACE}.")}
    return names & set(REVISIONS)


def files() -> list[Path]:
    """The files of the repository, new ones included."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


@cache
def protocol_methods(package: str) -> tuple[Method, ...]:
    """The methods of a revision."""
    return build(Store().effective(package.removeprefix("v").replace("_", "-"))).methods


def test_there_are_modules_to_look_at() -> None:
    assert len(REVISIONS) == 5
    assert {name_of(path) for path in MODULES} >= {"cli.app", "protocol.passes", "runtime", "v2025_11_25.types"}


def test_imports_are_resolved() -> None:
    assert imports(GENERATOR / "protocol" / "passes" / "link_results.py") >= {"spec.BadInput", "protocol.model.Ref"}
    assert imports(GENERATED / "v2025_11_25" / "client.py") >= {"v2025_11_25.types", "runtime.abi"}


def test_every_part_of_the_generator_has_its_place() -> None:
    parts = {path.name for path in GENERATOR.iterdir() if any(path.glob("*.py"))}
    assert parts <= set(MAY_IMPORT)
    assert not list(GENERATOR.glob("*.py"))


@pytest.mark.parametrize("path", [path for path in MODULES if GENERATOR in path.parents], ids=name_of)
def test_the_generator_imports_one_way(path: Path) -> None:
    part = name_of(path).split(".")[0]
    assert [name for name in imports(path) if not within(name, MAY_IMPORT[part] | {part})] == []


@pytest.mark.parametrize("root", [GENERATOR, RUNTIME], ids=lambda root: root.parent.name)
def test_no_modules_import_each_other(root: Path) -> None:
    assert circles(root) == []


def test_circles_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "a/__init__.py": "from .inner import x\n",
        "a/inner.py": "from mcp_bindgen.b import y\n",
        "a/alone.py": "from .inner import x\n",
        "b.py": "def f():\n    from mcp_bindgen.a.alone import z\n",
        "c.py": "import typing\nif typing.TYPE_CHECKING:\n    from . import d\n",
        "e/__init__.py": "__getattr__ = lazy(__name__, {'z': 'inner'})\n",
        "e/inner.py": "import importlib\nimportlib.import_module('mcp_bindgen.f')\n",
        "f.py": "import mcp_bindgen.e\n",
        "d.py": "from . import c\nfrom .a import alone\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(f"{__name__}.GENERATOR", tmp_path)
    assert circles(tmp_path) == [["a", "a.alone", "a.inner", "b"], ["c", "d"], ["e", "e.inner", "f"]]


@pytest.mark.parametrize("path", [path for path in MODULES if RUNTIME in path.parents], ids=name_of)
def test_the_runtime_imports_only_itself(path: Path) -> None:
    assert [name for name in imports(path) if not within(name, {"runtime"})] == []


def test_the_runtime_has_its_layers() -> None:
    assert {path.name for path in RUNTIME.glob("runtime/*.py")} == {"__init__.py", "abi.py", "tasks.py"}
    assert {path.name for path in (RUNTIME / "runtime").iterdir() if any(path.glob("*.py"))} == set(LAYERS)
    for layer in LAYERS:
        said = ast.get_docstring(ast.parse((RUNTIME / "runtime" / layer / "__init__.py").read_text("utf-8")))
        assert said is not None
        assert "Imports" in said, layer


@pytest.mark.parametrize("path", [path for path in MODULES if RUNTIME in path.parents], ids=name_of)
def test_layers_import_downwards(path: Path) -> None:
    layer = name_of(path).split(".")[1:2]
    if layer and layer[0] in LAYERS:
        assert [
            name for name in imports(path) if not within(name, {f"runtime.{one}" for one in LAYERS[layer[0]]})
        ] == []
    if layer == ["tasks"]:
        assert imports(path) == set()


PRIVATE = {name_of(one) for one in HANDWRITTEN if one.stem.startswith("_") and one.stem != "__init__"}


@pytest.mark.parametrize("path", HANDWRITTEN, ids=name_of)
def test_private_modules_are_for_their_folder(path: Path) -> None:
    own = name_of(path).split(".")[: -1 if path.name != "__init__.py" else None]
    foreign = {name for name in PRIVATE if name.split(".")[:-1] != own}
    assert not imports(path) & foreign


WRITES = {"cli.terminal", "cli", "scaffold.check.probe"}
"""The modules that may write to stdout and stderr: the last one is a program whose output is captured."""


def writers(path: Path) -> Iterator[str]:
    """The places of a module that write to stdout or stderr, or make a console; asking what they are is no such."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            stream, _, last = name.rpartition(".")
            if (
                name == "print"
                or last in ("echo", "secho", "Console", "print_exc")
                or (re.match(r"sys\.(__)?std(out|err)", stream) and last not in ("isatty", "fileno"))
            ):
                yield name


@pytest.mark.parametrize("path", [path for path in MODULES if GENERATOR in path.parents], ids=name_of)
def test_one_module_writes_to_the_terminal(path: Path) -> None:
    assert name_of(path) in WRITES or list(writers(path)) == []


def test_writers_are_found(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("print(1)\ntyper.echo(1)\nsys.stdout.write('')\nrich.Console()\nif sys.stdin.isatty(): pass\n")
    assert list(writers(file)) == ["print", "typer.echo", "sys.stdout.write", "rich.Console"]


def texts(path: Path) -> Iterator[str]:
    """The strings of a module that are no docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


@pytest.mark.parametrize("path", [path for path in MODULES if RUNTIME in path.parents], ids=name_of)
def test_the_runtime_names_no_revision_and_no_method(path: Path) -> None:
    found = set(texts(path))
    assert not [text for text in found if re.search(r"\b20\d\d-\d\d-\d\d\b", text)]
    if name_of(path).split(".")[1:2] not in [[name] for name in NAMES_METHODS]:
        assert not found & names_of_methods()


@cache
def names_of_methods() -> set[str]:
    """The names of methods and of their stubs, as far as they are no plain words."""
    methods = [method for revision in REVISIONS for method in protocol_methods(revision)]
    named = {name for method in methods for name in (method.name, method.stub, f"on_{method.stub}")}
    return {name for name in named if "/" in name or "_" in name or name in ("initialize", "ping")}


@pytest.mark.parametrize("revision", REVISIONS)
def test_bindings_import_only_the_runtime_and_themselves(revision: str) -> None:
    for path in (GENERATED / revision).glob("*.py"):
        assert [
            name for name in imports(path) if not within(name, {"runtime.abi", revision}) and name != "runtime"
        ] == [], path.name


@pytest.mark.parametrize("root", [GENERATOR, RUNTIME, GENERATED], ids=lambda root: root.parent.name)
def test_the_namespace_belongs_to_nobody(root: Path) -> None:
    assert not (root / "__init__.py").exists()
    assert all((path / "__init__.py").exists() for path in root.iterdir() if any(path.glob("*.py")))


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_revision_costs_nothing_until_it_is_used(revision: str) -> None:
    loaded = after(f"import {NAMESPACE}.{revision}")
    assert revisions(loaded) == {revision}
    assert not loaded & HEAVY
    assert not {f"{NAMESPACE}.{part}" for part in MAY_IMPORT} & loaded


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_types_of_a_revision_load_no_other(revision: str) -> None:
    loaded = after(f"from {NAMESPACE}.{revision} import Client, Server, dispatcher, errors, methods, types")
    assert revisions(loaded) == {revision}
    assert "pydantic" in loaded
    assert not loaded & (HEAVY - {"pydantic", "anyio"})
    assert not {f"{NAMESPACE}.{part}" for part in MAY_IMPORT} & loaded


def test_the_runtime_costs_nothing_until_it_is_used() -> None:
    loaded = after(f"import {NAMESPACE}.runtime")
    assert not revisions(loaded)
    assert not loaded & HEAVY


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("--version", set[str]()),
        ("methods 2025-11-25", {"pydantic"}),
        ("show 2025-11-25 Tool", {"pydantic"}),
        ("diff 2025-06-18 2025-11-25", {"pydantic"}),
        ("history Tool", {"pydantic"}),
        ("schema list", {"pydantic"}),
    ],
)
def test_a_command_loads_only_what_it_needs(command: str, needed: set[str]) -> None:
    loaded = after(
        "import contextlib, io, sys\n"
        f"sys.argv = ['mcp-bindgen', *{command.split()}]\n"
        "from mcp_bindgen.cli import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "    main()\n"
    )
    assert loaded & (HEAVY | {"jsonschema_rs", "tomlkit", "mypy"}) - needed == {"typer"}
    runtime = {name.removeprefix(f"{NAMESPACE}.runtime") for name in loaded if name.startswith(f"{NAMESPACE}.runtime")}
    assert runtime <= {"", ".core", ".core.home", ".core.lazy", ".entrypoints", ".entrypoints.user_bindings"}


@pytest.mark.parametrize("revision", REVISIONS)
def test_models_are_built_when_they_are_used(revision: str) -> None:
    after(
        f"from {NAMESPACE}.{revision} import Client, Server, dispatcher, types\n"
        "models = {name: vars(types)[name] for name in types.__all__ if isinstance(vars(types)[name], type)}\n"
        "assert len(models) > 100\n"
        "assert [name for name, model in models.items() if model.__pydantic_complete__] == []\n"
        "types.Tool(name='echo', input_schema=types.ToolInputSchema())\n"
        "built = {name for name, model in models.items() if model.__pydantic_complete__}\n"
        "assert built == {'Tool', 'ToolInputSchema'}, built"
    )


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_what_is_public_is_documented(path: Path) -> None:
    assert list(undocumented(path)) == []


@pytest.mark.parametrize("path", HANDWRITTEN, ids=name_of)
def test_modules_are_short(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("pattern", [REGISTRIES, PLACES], ids=["registries", "places"])
def test_no_file_names_a_machine(pattern: re.Pattern[str]) -> None:
    found = {
        str(path.relative_to(ROOT)): hits
        for path in files()
        if (hits := [hit[0] for hit in pattern.finditer(path.read_text("utf-8", errors="ignore"))])
    }
    assert found == {}


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
def test_the_patterns_tell_machines_apart(pattern: re.Pattern[str], bad: str, good: str) -> None:
    assert pattern.search(bad)
    assert not pattern.search(good)


def test_names_that_stubs_must_not_take_are_those_of_the_runtime() -> None:
    from mcp_bindgen.protocol import naming
    from mcp_bindgen.runtime import Client, Context, Server

    classes = {base for side in (Client, Context, Server) for base in side.__mro__ if base.__module__ != "builtins"}
    own = {name for base in classes for name in (*vars(base), *inspect.get_annotations(base))}
    assert {name for name in own if not name.startswith("_")} <= naming.INHERITED
