"""Carry out edits of Python code: all other bytes stay as they are, and code that goes becomes a comment."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from .files import Located, Module
from .result import Edit, Span, Use

COMMA = re.compile(rb"(\s|\\\r?\n|#[^\n]*\n)*,")
GIVEN = re.compile(rb"\w+\s*=\s*")
"""The comma after a keyword, and the name before its value."""

_LINE = re.compile(rb"([ \t\f]*)[^\r\n]*(\r?\n)?")


def edited(module: Module, edits: Iterable[Edit]) -> bytes:
    """Return the code of a file with edits; an edit that overlaps an earlier one is left for another round."""
    done: dict[Span, None] = {}
    for edit in edits:
        nodes = module.nodes.get((edit.line, edit.offset), [])
        spans = edit.spans or [span for node in nodes for span in _spans(module, node, edit)]
        if not any(_meet(one, other) for one in spans for other in done):
            done |= dict.fromkeys(spans)
    text = bytearray(module.utf8)
    for start, end, replacement in sorted(done, reverse=True):
        text[start:end] = replacement
    return text.decode().encode(module.encoding)


def marked(module: Module, uses: Iterable[Use]) -> bytes:
    """Return the code of a file with a comment behind each use, at the next end of a line that can have one."""
    lines = [*module.lines]
    strings = (one for one in ast.walk(module.tree) if isinstance(one, ast.Constant | ast.JoinedStr))
    inside = {line for one in strings for line in range(one.lineno, one.end_lineno or 0)}
    inside |= {number for number, line in enumerate(lines, 1) if line.rstrip(b"\r\n").endswith(b"\\")}
    for use in uses:
        number = next(one for one in range(use.place.line, len(lines) + 1) if one not in inside) - 1
        code, line = lines[number].rstrip(b"\r\n"), lines[number]
        again = "It runs again after each question." if use.change.kind == "repeated" else use.change.hint
        comment = f"  # TODO {use.name}: {again}" if use.name else f"  # TODO {use.change.new}"
        if (mark := comment.encode("ascii", "replace")) not in code:
            lines[number] = code + mark + line[len(code) :]
    return b"".join(lines).decode().encode(module.encoding)


def _meet(one: Span, other: Span) -> bool:
    """Return whether two different edits overlap, or insert at the same place."""
    return one != other and ((one[0] < other[1] and other[0] < one[1]) or one[:2] == other[:2])


def _spans(module: Module, node: Located, edit: Edit) -> Iterator[Span]:
    """Yield the replacements that make an edit of a node that starts at its place."""
    text, (start, end), old, new = module.utf8, module.span(node), edit.old, edit.new.encode()
    last = end - len(old.encode())
    match edit.kind, node:
        case "rename", ast.Name(id=name) | ast.keyword(arg=name) if name == old:
            yield start, start + len(old.encode()), new
        case "rename", ast.Attribute(attr=name) if name == old and text[last:end] == old.encode():
            yield last, end, new
        case "rename", ast.ImportFrom(names=names):
            starts = [module.start(alias) for alias in names if alias.name == old]
            yield from ((one, one + len(old.encode()), new) for one in starts)
        case "rename", ast.Constant(value=str()):  # a quoted annotation
            yield from ((*one.span(), new) for one in re.compile(rf"\b{old}\b".encode()).finditer(text, start, end))
        case _ if node in module.formatted:  # its place is not exact before Python 3.12, nor may there be comments
            return
        case "extra", ast.Attribute(attr=name) if name == old:
            yield from ((start, start, b"("), (last, end, b'model_extra or {}).get("' + new + b'")'))
        case "keyword", ast.Call(args=arguments) if int(old) < len(arguments):
            yield (place := module.start(arguments[int(old)])), place, new + b"="
        case "mapping", ast.Call(func=func, keywords=keywords) if old == ast.unparse(func).rpartition(".")[2]:
            yield from ((start, text.index(b"(", module.end(func)) + 1, b"{"), (end - 1, end, b"}"))
            for keyword, wire in zip(keywords, new.split(), strict=True):
                found = GIVEN.match(text, module.start(keyword))
                yield *(found.span() if found else (start, start)), b'"' + wire + b'": '
        case "drop", ast.keyword(arg=name) if name == old:
            comma = COMMA.match(text, end)
            yield _comment(text, start, comma.end() if comma else end, new)
        case "statement", ast.Expr() if not any(_beside(text, start, end)):
            is_alone = any(body == [node] for one in ast.walk(module.tree) for _, body in ast.iter_fields(one))
            yield start, end, b"pass  " * is_alone + _comment(text, start, end, new)[2]
        case _:
            pass


def _beside(text: bytes, start: int, end: int) -> tuple[bytes, bytes]:
    """Return the code before and after a span, on its lines."""
    before, after = text[text.rfind(b"\n", 0, start) + 1 : start], text[end:].partition(b"\n")[0].strip()
    return before.strip(), after if not after.startswith(b"#") else b""


def _comment(text: bytes, start: int, end: int, mark: bytes) -> Span:
    """Return the replacement of code by a comment that has its lines to itself and begins with a mark."""
    before, after = _beside(text, start, end)
    found = _LINE.match(text, text.rfind(b"\n", 0, start) + 1)
    assert found is not None
    margin, indent, newline = found[1], found[1] + b"    " * bool(before), found[2] or b"\n"
    first, *others = (one.removeprefix(margin) for one in text[start:end].splitlines())
    comment = (newline + indent).join([mark + b" " + first, *((b"# " + one).rstrip() for one in others)])
    if before:
        start, comment = len(text[:start].rstrip(b" \t\f")), newline + indent + comment
    if after:
        end = len(text) - len(text[end:].lstrip(b" \t\f"))
        comment += newline + (margin if after[0] in b")]}" else indent)
    return start, end, comment
