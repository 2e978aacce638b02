"""Drops the imports that a rendered module does not use, so that templates may name all that they could need."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def prune(code: str) -> str:
    """`code` without the imported names that nothing in it refers to."""
    tree = ast.parse(code)
    used = set(_names(tree))
    lines = code.splitlines(keepends=True)
    for node in reversed(tree.body):
        if isinstance(node, ast.ImportFrom) and node.end_lineno is not None:
            kept = [alias for alias in node.names if (alias.asname or alias.name) in used]
            if len(kept) < len(node.names):
                text = ast.unparse(ast.ImportFrom(node.module, kept, node.level)) + "\n" if kept else ""
                lines[node.lineno - 1 : node.end_lineno] = [text]
    return "".join(lines)


def _names(tree: ast.AST) -> Iterator[str]:
    """The names in `tree`, those in quoted annotations included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value:
            try:
                yield from _names(ast.parse(node.value, mode="eval").body)
            except (SyntaxError, ValueError):
                continue
