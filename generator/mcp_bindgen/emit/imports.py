"""Drop the imports that a rendered module does not use, so that templates may name all that they could need."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def prune(code: str) -> str:
    """Return `code` without the imported names that nothing in it refers to."""
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


def _names(node: ast.AST, quoted: bool = False) -> Iterator[str]:
    """Return the names in `node`; with `quoted` its strings are annotations, else they are values."""
    match node:
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id="Literal" as name)):
            yield name
        case ast.Constant(value=str(text)) if quoted:
            try:
                yield from _names(ast.parse(text, mode="eval").body)
            except (SyntaxError, ValueError):
                return
        case _:
            annotations = list(_annotations(node))
            inherited = quoted and not isinstance(node, ast.Call)
            for child in ast.iter_child_nodes(node):
                yield from _names(child, inherited or child in annotations)


def _annotations(node: ast.AST) -> Iterator[ast.AST | None]:
    """Return the children of `node` that are annotations, so that their strings are too."""
    match node:
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias"), value=value):
            yield value
        case ast.AnnAssign(annotation=annotation) | ast.arg(annotation=annotation):
            yield annotation
        case ast.FunctionDef(returns=annotation) | ast.AsyncFunctionDef(returns=annotation):
            yield annotation
        case ast.Call(func=ast.Name(id="TypeAliasType"), args=arguments):
            yield from arguments
        case _:
            return
