"""Carry out edits of Python code: all other bytes stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from .files import Module
from .result import Edit, EditKind


def edited(module: Module, edits: Iterable[Edit]) -> bytes | None:
    """Return the code of a file with some edits; `None` if libcst does not reproduce the file."""
    try:
        tree = cst.parse_module(module.raw)
    except (cst.ParserSyntaxError, UnicodeError, RecursionError):
        return None
    if tree.bytes != module.raw:
        return None
    places: dict[tuple[int, int], list[Edit]] = {}
    for edit in edits:
        place = module.place(edit.line, edit.offset)
        places.setdefault((place.line, place.column - 1), []).append(edit)
    wrapper = MetadataWrapper(tree, unsafe_skip_copy=True)
    return wrapper.module.visit(_Editor(places, wrapper.resolve(PositionProvider))).bytes


class _Editor(cst.CSTTransformer):
    """Carries out edits.

    Args:
        edits: Line and column, counted from 0, -> the edits of the nodes that start there.
        ranges: Node -> its range.
    """

    def __init__(self, edits: Mapping[tuple[int, int], list[Edit]], ranges: Mapping[cst.CSTNode, CodeRange]) -> None:
        super().__init__()
        self._edits, self._ranges = edits, ranges

    def _at(self, node: cst.CSTNode, *kinds: EditKind) -> list[Edit]:
        start = self._ranges[node].start
        return [edit for edit in self._edits.get((start.line, start.column), []) if edit.kind in kinds]

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        for edit in self._at(original_node, "rename"):
            if edit.old == original_node.value:
                return updated_node.with_changes(value=edit.new)
        return updated_node

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        for edit in self._at(original_node, "rename", "annotate", "extra"):
            if edit.old != original_node.attr.value:
                continue
            if edit.kind == "extra":
                read = cst.parse_expression(f'(x.model_extra or {{}}).get("{edit.new}")')
                found = cst.ensure_type(cst.ensure_type(read, cst.Call).func, cst.Attribute)
                extra = cst.ensure_type(cst.ensure_type(found.value, cst.BooleanOperation).left, cst.Attribute)
                return cst.ensure_type(read.with_deep_changes(extra, value=updated_node.value), cst.Call)
            return updated_node.with_changes(attr=cst.Name(edit.new))
        return updated_node

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:
        renames = {edit.old: edit.new for edit in self._at(original_node, "rename")}
        if not renames or isinstance(updated_node.names, cst.ImportStar):
            return updated_node
        names = [
            alias.with_changes(name=cst.Name(renames[alias.name.value]))
            if isinstance(alias.name, cst.Name) and alias.name.value in renames
            else alias
            for alias in updated_node.names
        ]
        return updated_node.with_changes(names=names)

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        """Rename classes in quoted annotations."""
        text = original_node.value
        for edit in self._at(original_node, "rename"):
            text = re.sub(rf"\b{edit.old}\b", edit.new, text)
        return updated_node.with_changes(value=text)

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> cst.Expr | cst.RemovalSentinel:
        return cst.RemoveFromParent() if self._at(original_node, "statement") else updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        for edit in self._at(original_node, "mapping"):
            pairs = zip(edit.new.split(), updated_node.args, strict=False)
            return cst.Dict([cst.DictElement(cst.SimpleString(f'"{wire}"'), one.value) for wire, one in pairs])
        arguments: Sequence[cst.Arg] = updated_node.args
        for edit in self._at(original_node, "drop", "keyword"):
            if edit.kind == "drop":
                arguments = _without(arguments, edit.old)
            elif int(edit.old) < len(arguments):
                equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
                named = arguments[int(edit.old)].with_changes(keyword=cst.Name(edit.new), equal=equal)
                arguments = [named if one is arguments[int(edit.old)] else one for one in arguments]
        return updated_node.with_changes(args=arguments)


def _without(arguments: Sequence[cst.Arg], keyword: str) -> Sequence[cst.Arg]:
    """Return arguments without a keyword; the last remaining argument takes over the last comma."""
    kept = [one for one in arguments if one.keyword is None or one.keyword.value != keyword]
    if kept and len(kept) < len(arguments):
        own, comma = kept[-1].comma, arguments[-1].comma
        if isinstance(own, cst.Comma) and isinstance(comma, cst.Comma):
            here, there = own.whitespace_after, comma.whitespace_after
            if isinstance(here, cst.ParenthesizedWhitespace) and isinstance(there, cst.ParenthesizedWhitespace):
                comma = comma.with_changes(whitespace_after=there.with_changes(first_line=here.first_line))
        kept[-1] = kept[-1].with_changes(comma=comma)
    return kept
