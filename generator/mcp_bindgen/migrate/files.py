"""The Python files of a project: which ones belong to it, and whether they can be read."""

from __future__ import annotations

import ast
import io
import os
import re
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from mcp_bindgen.spec import BadInput

from .result import Place

Located = ast.expr | ast.stmt | ast.arg | ast.keyword | ast.alias | ast.pattern

_FOREIGN = frozenset({"node_modules", "__pycache__", "site-packages"})
_SUFFIXES = frozenset({".py", ".pyi"})


@dataclass(frozen=True)
class Module:
    """A Python file.

    Attributes:
        path: The file.
        raw: Its bytes.
        tree: Its syntax tree.
    """

    path: Path
    raw: bytes
    tree: ast.Module

    @cached_property
    def encoding(self) -> str:
        """The encoding that the file declares."""
        return tokenize.detect_encoding(io.BytesIO(self.raw).readline)[0]

    @cached_property
    def text(self) -> str:
        """The decoded text; line ends stay as they are."""
        return self.raw.decode(self.encoding)

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines in UTF-8, as the offsets of syntax trees count them."""
        return self.text.encode().splitlines(keepends=True)

    @cached_property
    def utf8(self) -> bytes:
        """The text in UTF-8."""
        return b"".join(self.lines)

    @cached_property
    def starts(self) -> list[int]:
        """The offsets of the lines in `utf8`."""
        return [0, *accumulate(map(len, self.lines))]

    def span(self, node: Located) -> tuple[int, int]:
        """Return the offsets of a node in `utf8`."""
        return self.start(node), self.end(node)

    def start(self, node: Located) -> int:
        """Return the offset at which a node starts in `utf8`."""
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node: Located) -> int:
        """Return the offset at which a node ends in `utf8`."""
        return self.starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    @cached_property
    def formatted(self) -> frozenset[ast.AST]:
        """The nodes in f-strings."""
        texts = (one for one in ast.walk(self.tree) if isinstance(one, ast.JoinedStr))
        return frozenset(node for one in texts for node in ast.walk(one))

    @cached_property
    def nodes(self) -> dict[tuple[int, int], list[Located]]:
        """Line and offset in bytes -> the nodes that start there, the outermost first."""
        found: dict[tuple[int, int], list[Located]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, Located):
                found.setdefault((node.lineno, node.col_offset), []).append(node)
        return found

    def place(self, line: int, offset: int) -> Place:
        """Return the place of a byte in a line."""
        column = len(self.lines[line - 1][:offset].decode(errors="ignore")) + 1
        return Place(str(self.path), line, column)

    def place_of(self, node: ast.expr | ast.arg | ast.keyword | ast.alias | ast.pattern) -> Place:
        """Return the place of a node: its last name if it is an attribute."""
        if not isinstance(node, ast.Attribute):
            return self.place(node.lineno, node.col_offset)
        return self.place(node.end_lineno or node.lineno, (node.end_col_offset or 0) - len(node.attr.encode()))

    def tail(self, line: int, offset: int, name: str) -> Place:
        """Return the place of `name` in the node at an offset, such as the last name of an attribute."""
        for node in self.nodes.get((line, offset), []):
            match node:
                case ast.Attribute(attr=last) if last == name:
                    return self.place_of(node)
                case ast.ImportFrom(names=names):
                    return next((self.place_of(one) for one in names if one.name == name), self.place(line, offset))
                case _:
                    pass
        found = re.compile(rf"\b{name}\b".encode()).search(self.lines[line - 1], offset)
        return self.place(line, found.start() if found is not None else offset)

    def named(self, line: int, offset: int, name: str) -> ast.expr | ast.stmt | None:
        """Return the node that spells a name: the node at an offset, or else the first in the line.

        The offsets of names in quoted annotations are not offsets in the file.
        """
        here = [one for one in self.nodes.get((line, offset), []) if _spells(one, name)]
        there = [
            one for (number, _), nodes in self.nodes.items() if number == line for one in nodes if _spells(one, name)
        ]
        return next((one for one in [*here, *there] if isinstance(one, ast.expr | ast.stmt)), None)

    def keyword_of(self, line: int, offset: int) -> ast.keyword | None:
        """Return the keyword whose value starts at an offset."""
        keywords = (one for one in ast.walk(self.tree) if isinstance(one, ast.keyword) and one.arg is not None)
        return next((one for one in keywords if (one.value.lineno, one.value.col_offset) == (line, offset)), None)

    def call_around(self, line: int, offset: int) -> ast.Call | None:
        """Return the call with an argument that starts at an offset."""
        for call in (one for one in ast.walk(self.tree) if isinstance(one, ast.Call)):
            values = [*call.args, *(one.value for one in call.keywords)]
            if any((one.lineno, one.col_offset) == (line, offset) for one in values):
                return call
        return None

    def header(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Place:
        """Return the place of the name of a function."""
        text = self.lines[node.lineno - 1]
        start = text.find(b"def ", node.col_offset) + 4
        return self.place(node.lineno, max(text.find(node.name.encode(), start), 0))


def files(folder: Path) -> Iterator[Path]:
    """Return the files below a folder in alphabetical order, without those in folders of tools.

    Hidden folders, virtual environments and caches are folders of tools. Links to folders are not followed.
    """
    for above, folders, names in os.walk(folder):
        here = Path(above)
        folders[:] = sorted(name for name in folders if not _is_foreign(here / name))
        yield from (here / name for name in sorted(names) if (here / name).is_file())


def python_files(root: Path) -> Iterator[Path]:
    """Return the Python files and stub files below a folder, or `root` itself if it is a file.

    Raises:
        BadInput: `root` does not exist.
    """
    if not root.exists():
        raise BadInput("there is no such file or folder", file=root, fix="give the path of Python code")
    if not root.is_dir():
        yield root
    yield from (path for path in files(root) if path.suffix in _SUFFIXES)


def parse(path: Path, raw: bytes) -> Module | str:
    """Return a file with its syntax tree, or the reason why Python does not accept it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(raw)
            compile(tree, str(path), "exec", dont_inherit=True)
        module = Module(path, raw, tree)
        module.text.encode()
        ast.NodeVisitor().visit(tree)
    except SyntaxError as error:
        return f"is not Python: {error.msg}" + (f" at line {error.lineno}" if error.lineno else "")
    except (UnicodeError, ValueError, LookupError) as error:
        return f"is not Python: {error}"
    except (RecursionError, MemoryError):
        return "is nested too deeply"
    return module


def _spells(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Attribute(attr=last) | ast.Name(id=last):
            return last == name
        case ast.ImportFrom(names=names):
            return any(alias.name == name for alias in names)
        case ast.Constant(value=str(text)):
            return re.search(rf"\b{name}\b", text) is not None
        case _:
            return False


def _is_foreign(folder: Path) -> bool:
    return folder.name.startswith(".") or folder.name in _FOREIGN or (folder / "pyvenv.cfg").exists()
