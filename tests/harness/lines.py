"""Lines of code of Python modules."""

from __future__ import annotations

import ast


def code_lines(text: str, tree: ast.Module | None = None) -> int:
    """Return the number of lines of a module without blank lines, comments and docstrings."""
    lines = {number for number, line in enumerate(text.split("\n"), 1) if line.strip() and line.lstrip()[0] != "#"}
    for node in ast.walk(tree or ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            case _:
                pass
    return len(lines)
