"""Drops the imports that a rendered module does not use, so that templates may name all that they could need."""

from __future__ import annotations

import ast


def prune(code: str) -> str:
    """`code` without the imported names that nothing in it refers to."""
    tree = ast.parse(code)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    lines = code.splitlines(keepends=True)
    for node in reversed(tree.body):
        if isinstance(node, ast.ImportFrom) and node.end_lineno is not None:
            kept = [alias for alias in node.names if (alias.asname or alias.name) in used]
            if len(kept) < len(node.names):
                text = ast.unparse(ast.ImportFrom(node.module, kept, node.level)) + "\n" if kept else ""
                lines[node.lineno - 1 : node.end_lineno] = [text]
    return "".join(lines)
