"""Draws small changes of the syntax tree at random, the same ones for the same seed."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FLIPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}


class Mutant(NamedTuple):
    """A bug: `old`, which begins at an offset of a file, becomes `new`."""

    file: str
    offset: int
    old: str
    new: str


def draw(root: Path, folders: list[str], count: int, seed: int) -> list[Mutant]:
    """Return bugs of modules, spread over the folders: each folder in its turn, then any place in it."""
    known = {folder: sorted((root / folder).rglob("*.py")) for folder in folders}
    found: list[Mutant] = []
    for turn in range(count):
        folder = folders[turn % len(folders)]
        chance = random.Random(f"{seed} {folder} {turn}")  # a change of one folder leaves the bugs of the others alone
        places: list[Mutant] = []
        while not places:
            places = sorted(set(_mutants(root, chance.choice(known[folder]))) - set(found))
        found.append(chance.choice(places))
    return found


def _mutants(root: Path, path: Path) -> Iterator[Mutant]:
    """Find the places for changes inside the functions of a module."""
    text = path.read_text("utf-8")
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    data, file = text.encode(), path.relative_to(root).as_posix()
    functions = [one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in {part for function in functions for statement in function.body for part in ast.walk(statement)}:
        changed = _changed(node)
        if changed is not None and isinstance(node, ast.expr | ast.stmt):
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            new = ast.unparse(changed)
            new = f"({new})" if isinstance(node, ast.expr) and not isinstance(node, ast.Constant) else new
            yield Mutant(file, begin, data[begin:end].decode(), new)


def _changed(node: ast.AST) -> ast.AST | None:
    """Return another node in place of one, or None where there is no small change."""
    match node:
        case ast.Compare(left, [operator], [right]) if type(operator) in FLIPPED:
            return ast.Compare(left, [FLIPPED[type(operator)]()], [right])  # type: ignore[list-item]
        case ast.BoolOp(operator, values):
            return ast.BoolOp(FLIPPED[type(operator)](), values)  # type: ignore[arg-type]
        case ast.BinOp(left, operator, right) if type(operator) in FLIPPED:
            return ast.BinOp(left, FLIPPED[type(operator)](), right)  # type: ignore[arg-type]
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.Constant(bool() as value):
            return ast.Constant(not value)
        case ast.Constant(int() as value):
            return ast.Constant(value + 1)
        case ast.IfExp(test, body, other):
            return ast.IfExp(test, other, body)
        case ast.Continue():
            return ast.Break()
        case ast.Break():
            return ast.Continue()
        case ast.Expr(ast.Call() | ast.Await()) | ast.Raise():
            return ast.Pass()
        case ast.Return(ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            return ast.Return(ast.Constant(None))
        case _:
            return None
