"""Rewrite the imports of a Python file from the bindings of one revision to those of another.

Only the name of the package changes, where the syntax says that it is that name; every other byte stays.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar
from unicodedata import normalize

import libcst as cst

from .package_references import NAMESPACE, PackageReferences, dotted, imported

_LINE_END = re.compile(rb"(\r\n|\r|\n)")
Node = TypeVar("Node", bound=cst.CSTNode)


@dataclass(frozen=True)
class Rewritten:
    """A file after its imports were rewritten.

    Attributes:
        raw: Its bytes; the same as before where nothing was rewritten.
        lines: The lines that changed, counted from 1.
        problem: Why it was left although it refers to the old package; empty where it was not.
    """

    raw: bytes
    lines: tuple[int, ...] = ()
    problem: str = ""


def rewrite_imports(raw: bytes, old: str, new: str, own: frozenset[str] = frozenset()) -> Rewritten:
    """Rewrite the references to a package of bindings in a file.

    Args:
        raw: The content of the file.
        old: The name of the old package inside of our namespace, e.g. `v2025_11_25`.
        new: The name of the new package.
        own: The top-level names of the project itself, whose modules may hand the package on; none where a module of
            the project has the name of the old package.
    """
    if old == new or old.encode() not in raw:
        return Rewritten(raw)
    pieces = _LINE_END.split(raw)
    before, ends = pieces[::2], [*pieces[1::2], b""]
    fed = [
        line if line.strip() else b"" for line in before
    ]  # as libcst loses form feeds, and carriage returns at the end
    source = b"\n".join([*fed, b""])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)  # refuses what is nested too deeply, at which libcst would end Python
        module = cst.parse_module(source)
        references = PackageReferences(old, new, own)
        module.visit(references)
        after = module.visit(_Renaming(references)).bytes
        problem = references.problem(module) if after != source else ""
    except _Unclear:
        return Rewritten(raw, problem=f"{old} stands there in a way that is not understood")
    except (SyntaxError, cst.ParserSyntaxError, UnicodeError, ValueError, LookupError) as error:
        return Rewritten(raw, problem=f"is not Python that can be read: {error}")
    except (RecursionError, MemoryError):
        return Rewritten(raw, problem="is nested too deeply to be read")
    if problem:
        return Rewritten(raw, problem=problem)
    pairs = zip(fed, after.split(b"\n")[:-1], strict=True)
    changed = {number: now for number, (was, now) in enumerate(pairs) if was != now}
    kept = [changed.get(number, line) + end for number, (line, end) in enumerate(zip(before, ends, strict=True))]
    return Rewritten(b"".join(kept), tuple(number + 1 for number in changed))


class _Unclear(Exception):
    """A name is spelled in a way that cannot be rewritten."""


class _Renaming(cst.CSTTransformer):
    """Gives the package its new name, in imports, in expressions and in strings that name it."""

    def __init__(self, references: PackageReferences) -> None:
        super().__init__()
        self.references = references
        self.old, self.new = references.old, references.new
        self._dotted = re.compile(rf"{NAMESPACE}\.{re.escape(self.old)}([.:][\w.:]*)?")
        self._relative = re.compile(rf"\.{re.escape(self.old)}(\.[\w.]*)?")
        self._named: set[cst.CSTNode] = set()  # strings that name the package because of where they stand

    # --- imports ------------------------------------------------------------------------------------------------

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def leave_Import(self, original_node: cst.Import, updated_node: cst.Import) -> cst.Import:
        renamed = [self._alias(a) if self._is_package(dotted(a.name)) else a for a in updated_node.names]
        return updated_node.with_changes(names=renamed)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:
        if not updated_node.relative and self._is_package(dotted(updated_node.module)):
            return updated_node.with_changes(module=updated_node.module and self._name(updated_node.module))
        if self.references.may_offer(updated_node) and imported(updated_node):
            renamed = [self._alias(a) if dotted(a.name) == self.old else a for a in imported(updated_node)]
            return updated_node.with_changes(names=renamed)
        return updated_node

    def _is_package(self, name: str) -> bool:
        if self.references.is_package(normalize("NFKC", name)) and not self.references.is_package(name):
            raise _Unclear
        return self.references.is_package(name)

    def _alias(self, alias: cst.ImportAlias) -> cst.ImportAlias:
        asname = alias.asname and alias.asname.with_changes(name=self._name(alias.asname.name))
        return alias.with_changes(name=self._name(alias.name), asname=asname)

    def _name(self, node: Node) -> Node:
        """Rename the parts of a dotted name that are the package."""
        if isinstance(node, cst.Attribute):
            return node.with_changes(value=self._name(node.value), attr=self._name(node.attr))
        return node.with_changes(value=self.new) if isinstance(node, cst.Name) and node.value == self.old else node

    # --- expressions --------------------------------------------------------------------------------------------

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return self._name(updated_node) if self.references.bound else updated_node

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        within = dotted(original_node.value) in self.references.namespaces
        return updated_node.with_changes(attr=self._name(original_node.attr) if within else original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    # --- strings ------------------------------------------------------------------------------------------------

    def visit_Call(self, node: cst.Call) -> None:
        """Note the name in `import_module(".NAME", "mcp_bindgen")`."""
        match node.args:
            case [cst.Arg(value=cst.SimpleString() as name), cst.Arg(value=cst.SimpleString() as base)]:
                is_name = isinstance(name.evaluated_value, str) and self._relative.fullmatch(name.evaluated_value)
                if base.evaluated_value == NAMESPACE and is_name:
                    self._named.add(name)
            case _:
                pass

    def visit_Assign(self, node: cst.Assign) -> None:
        self._export(node.targets[0].target, node.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._export(node.target, node.value)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._export(node.target, node.value)

    def _export(self, target: cst.CSTNode, value: cst.CSTNode | None) -> None:
        """Note the strings in `__all__` that are the package."""
        if dotted(target) == "__all__" and value is not None and self.references.bound:
            self._named.update(one for one in _strings(value) if one.evaluated_value == self.old)

    def visit_ConcatenatedString(self, node: cst.ConcatenatedString) -> None:
        if isinstance(node.evaluated_value, str) and self._names_package(node.evaluated_value):
            self._named.update(_strings(node))

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        text = original_node.evaluated_value
        if not isinstance(text, str) or not (original_node in self._named or self._names_package(text)):
            return updated_node
        if text.count(self.old) != original_node.value.count(self.old):
            raise _Unclear
        return updated_node.with_changes(value=original_node.value.replace(self.old, self.new))

    def leave_FormattedStringText(
        self, original_node: cst.FormattedStringText, updated_node: cst.FormattedStringText
    ) -> cst.FormattedStringText:
        named = self._dotted.fullmatch(original_node.value) is not None
        return (
            updated_node.with_changes(value=original_node.value.replace(self.old, self.new)) if named else updated_node
        )

    def _names_package(self, text: str) -> bool:
        """Return whether a string is a dotted name of the package, or an expression such as a quoted annotation."""
        if self._dotted.fullmatch(text):
            return True
        count = 0 if text.isidentifier() or self.old not in text else self.references.count(text)
        return count > 0 and count == text.count(self.old)


def _strings(node: cst.CSTNode) -> Iterator[cst.SimpleString]:
    """Find the strings in a node."""
    if isinstance(node, cst.SimpleString):
        yield node
    for child in node.children:
        yield from _strings(child)
