"""The bindings of a revision as modules for the type checker, and marks that make it report uses of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from importlib.util import find_spec
from itertools import product
from pathlib import Path

from mcp_bindgen.conversion.document import Model
from mcp_bindgen.emit.emitter import Options
from mcp_bindgen.emit.python import naming
from mcp_bindgen.emit.python.bindings import emit
from mcp_bindgen.emit.python.calls import RECEIVERS
from mcp_bindgen.emit.python.installation import NAMESPACE
from mcp_bindgen.ir import Protocol

from .bindings import Bindings
from .changes import Changes

Packages = Mapping[str, str]
"""Path of a module -> its text."""


def bindings(protocol: Protocol, package: str) -> dict[str, str]:
    """Return the modules of the bindings of a revision under an import name: the installed ones, if they fit it."""
    folder = package.replace(".", "/")
    spec = find_spec(f"{NAMESPACE}.{naming.package(protocol.revision)}")
    installed = Path(spec.origin).parent if spec is not None and spec.origin is not None else None
    mark = f"schema {protocol.digest[:16]}."
    if installed is not None and mark in (installed / "types.py").read_text("utf-8").partition("\n")[0]:
        files = {path.name: path.read_text("utf-8") for path in installed.iterdir() if path.is_file()}
    else:
        files = emit(Model(protocol), Options(package, ""))
    modules = {name: text for name, text in files.items() if name.endswith((".py", ".pyi")) and f"{name}i" not in files}
    return {f"{folder}/{name}": text for name, text in modules.items()}


def marked(modules: Packages, changes: Changes) -> dict[str, str]:
    """Return the old bindings with marks: the type checker reports overrides of handlers and calls that ask.

    Handlers are `final`, so that each override is an error. Calls that ask the client, or that need another capability
    now, are `deprecated`.
    """
    calls = {name.partition(".")[2] for name in changes.guarded if name.startswith("Client.")}
    asking = {*changes.asking, *(name.partition(".")[2] for name in changes.guarded if name.startswith("Context."))}
    final = {name: handlers(changes.old, name) for name in RECEIVERS}
    found: dict[str, str] = {}
    for name, text in modules.items():
        if not name.endswith(("/server.py", "/client.py")):
            found[name] = text
            continue
        tree = ast.parse(text)
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name in ("Client", "Context", "Server"):
                mark(node, final.get(node.name, set()), "final")
                mark(node, asking if node.name == "Context" else calls, "deprecated('')")
                if node.name == "Context":
                    node.body += _inherited(asking - {one.name for one in _functions(node)})
        found[name] = with_marks(tree)
    return found


def without(modules: Packages, members: Collection[tuple[str, str]]) -> dict[str, str]:
    """Return bindings without some members of classes, so that the type checker reports each use of them."""
    found = dict(modules)
    for (owner, name), module in product(members, (one for one in modules if one.endswith("/types.py"))):
        start = rf"(?ms)^(class {owner}\b.*?\n    )(?={name}:)"
        found[module] = re.sub(start, r"\1if not TYPE_CHECKING: ", found[module], count=1)
    return found


def with_marks(tree: ast.Module) -> str:
    """Return the text of a module with a docstring whose names `mark` has marked."""
    tree.body.insert(1, ast.parse("import typing_extensions as _marks").body[0])
    return ast.unparse(ast.fix_missing_locations(tree))


def handlers(bindings: Bindings, owner: str) -> set[str]:
    """Return the names of the handlers of a class."""
    return {stub.short for stub in bindings.stubs.values() if (stub.role, stub.owner) == ("handler", owner)}


def signatures(modules: Packages, package: str) -> dict[str, list[str]]:
    """Return handler -> the annotations of its parameters after `self`, as any module can write them."""
    found: dict[str, list[str]] = {}
    for name, text in modules.items():
        module = name.rpartition("/")[2].removesuffix(".py")
        if module not in ("client", "server"):
            continue
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef):
                qualify = _Qualified(f"{package}.{module}")
                for function in _functions(node):
                    annotations = [one.annotation for one in function.args.args[1:]]
                    written = [ast.unparse(qualify.visit(one)) for one in annotations if one is not None]
                    found[f"{node.name}.{function.name}"] = written
    return found


class _Qualified(ast.NodeTransformer):
    """Write the names of a module with the name of the module before them."""

    def __init__(self, module: str) -> None:
        self.module = module

    def visit_Name(self, node: ast.Name) -> ast.expr:
        is_local = node.id in ("Context", "abi", "types")
        return ast.Attribute(ast.Name(self.module, ast.Load()), node.id, ast.Load()) if is_local else node


def _functions(node: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))


def mark(node: ast.ClassDef, names: Collection[str], decorator: str) -> None:
    """Mark methods of a class, in place of deprecations; one with overloads keeps only its implementation."""
    overloads = [
        one for one in _functions(node) if one.name in names and "overload" in map(ast.unparse, one.decorator_list)
    ]
    node.body = [one for one in node.body if one not in overloads]
    for function in _functions(node):
        if function.name in names:
            others = [one for one in function.decorator_list if not ast.unparse(one).startswith("deprecated(")]
            function.decorator_list = [*others, ast.parse(f"_marks.{decorator}", mode="eval").body]


def _inherited(names: set[str]) -> list[ast.stmt]:
    """Return marked declarations of methods that the class inherits from the runtime."""
    lines = (
        f"@_marks.deprecated('')\nasync def {name}(self, *a: _marks.Any, **k: _marks.Any) -> _marks.Any: ..."
        for name in names
    )
    return ast.parse("\n".join(lines)).body
