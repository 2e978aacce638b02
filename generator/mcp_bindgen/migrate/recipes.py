"""Rewrite uses of members whose values `bridges.toml` moves: its rules, carried out on expressions of Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from mcp_bindgen.conversion.rules import ANY, ONLY_ITEM, Item, Place, Rule, Rules
from mcp_bindgen.emit.python import naming
from mcp_bindgen.emit.python.expressions import expression
from mcp_bindgen.ir.examples import Code, Unfit, fits
from mcp_bindgen.ir.model import Array, Field, Ref, Type, Union

from .bindings import Bindings
from .edits import COMMA, GIVEN
from .files import Module
from .result import Span

Text = tuple[int, int, str]
"""Start and end in the text, and the replacement, in which `_CLASS` stands before the names of classes."""

_CLASS, _VALUE, _BASE, _ABSENT = "\1", "\2", "\3", "\4"
"""Stand-ins for the module of a class, a given value, the object that is read, and the value of an absent member."""

_PLAIN = re.compile(rf"{_BASE}[\w.\[\]]+")
_CHANGES = re.compile(rb"\s*\.\s*(append|clear|extend|insert|pop|remove|reverse|sort|update)\(|\s*\[[^\n\]]*\]\s*=[^=]")
_PRESENT = (ast.List, ast.Dict, ast.Tuple, ast.ListComp, ast.DictComp, ast.JoinedStr, ast.BinOp, ast.Compare)


class Move(NamedTuple):
    """The new place of the value of a member, the expression that reads it there, and the old member."""

    put: Place
    text: str
    field: Field

    def __str__(self) -> str:
        """Return the place as readers of code see it: `display.title` or `outputs[].content`."""
        names = (f".{naming.argument(one)}" if isinstance(one, str) and one != ONLY_ITEM else "[]" for one in self.put)
        return "".join(names)[1:]


class Given(NamedTuple):
    """A keyword of a constructor or a class pattern: its value, and the offsets of both."""

    name: str
    value: ast.expr | ast.pattern
    start: int
    inner: int
    end: int


class Recipes:
    """The rules of a step under the names of Python.

    Attributes:
        moves: Old class and member -> the move of its value.

    Args:
        old: The old bindings.
        new: The new bindings.
        names: Old name -> new name of definitions; inline classes of moved members are added.
        rules: The rules.
    """

    def __init__(self, old: Bindings, new: Bindings, names: dict[str, str], rules: Rules) -> None:
        self._old, self._new, self._names, self._rules = old, new.protocol, names, rules
        self.moves: dict[tuple[str, str], Move] = {}
        for definition, one in [(name, one) for name in names for one in old.fields(name)] if rules else ():
            rule, type = self._rule(definition, one.field.wire), one.field.type
            if rule is not None and rule.put and rule.take == (one.field.wire,):
                with suppress(Unfit, KeyError, StopIteration):  # the new class has no such place
                    text, leaf = self._read(_BASE, Ref(names[definition]), rule.put)
                    self.moves[definition, one.name] = Move(rule.put, text, one.field)
                    if isinstance(type, Ref) and isinstance(leaf, Ref) and old.protocol.definitions[type.name].inline:
                        names[type.name] = leaf.name

    def _rule(self, definition: str, wire: str) -> Rule | None:
        name = self._old.protocol.schema_names.get(definition, definition)
        return self._rules.get((name, wire)) or self._rules.get((ANY, wire))

    def _read(self, base: str, type: Type, place: Place) -> tuple[str, Type]:
        """Return the expression of the value at a place below `base`, and its type."""
        if not place:
            return base, type
        new, step, rest = self._new, place[0], place[1:]
        if isinstance(step, Item) or step == ONLY_ITEM:
            array = new.resolve(type)
            if not isinstance(array, Array):
                raise Unfit(f"{type} is no array")
            if not isinstance(step, Item):
                return self._read(f"{base}[0]", array.items, rest)
            union, value = new.resolve(array.items), _put(dict(step.members), rest, Code(""))
            members = union.members if isinstance(union, Union) else (array.items,)
            kind = next(one for one in members if fits(new, one, value))
            fields = [field for field in new.fields_of(kind) if field.wire in step.members]
            tags = [field for field in fields if field.constant is not None] or fields
            values = {new.attribute(kind, one.wire): expression(new, one.type, value[one.wire]) for one in tags}
            tests = " and ".join(f"item.{name} == {value}" for name, value in values.items())
            text, leaf = self._read("item", kind, rest)
            return f"next(({text} for item in {base} if {tests or True}), {_ABSENT})", leaf
        base, field = f"{base}.{new.attribute(type, step)}", new.field_of(type, step)
        assert field is not None
        text, leaf = self._read(base, field.type, rest)
        return text if field.required or not rest else f"({text} if {base} is not None else {_ABSENT})", leaf

    def edits(self, definition: str, name: str, module: Module, node: ast.AST, package: str) -> tuple[Span, ...]:
        """Return the edits of the use of a moved member: an attribute, a constructor or a class pattern.

        There are none where no expression is sound for all values.
        """
        move = self.moves.get((definition, name))
        if move is None or node in module.formatted:
            return ()
        if isinstance(node, ast.Attribute):
            is_array = isinstance(self._old.protocol.resolve(move.field.type), Array)
            absent = "None" if not move.field.required else "[]" if is_array else _ABSENT
            return _read(module, node, move.text.replace(_ABSENT, absent))
        assert isinstance(node, ast.Call | ast.MatchClass)
        owner, groups, spans = Ref(self._names[definition]), dict[str, list[tuple[Move, Given]]](), list[Text]()
        given = list(_keywords(module, node))
        for one in given:
            if (move := self.moves.get((definition, one.name))) is not None:
                groups.setdefault(str(move.put[0]), []).append((move, one))
        for wire, parts in groups.items():
            name, ((_, first), *others) = self._new.attribute(owner, wire), parts
            with suppress(Unfit):  # other keywords are edited
                before, after = self._given(owner, wire, parts, module.utf8).split(_VALUE)
                if not {name, ""} & ({one.name for one in given} - {one.name for _, one in parts}):
                    spans += [(first.start, first.inner, f"{name}={before}"), (first.end, first.end, after)]
                    spans += [span for _, one in others for span in _without(module.utf8, one)]
        return self._placed(spans, module, node.func if isinstance(node, ast.Call) else node.cls, package)

    def _given(self, owner: Ref, wire: str, parts: Iterable[tuple[Move, Given]], text: bytes) -> str:
        """Return the expression that gives a member the values of others; raise `Unfit` if one may be absent."""
        new, field, tree = self._new, self._new.field_of(owner, wire), None
        assert field is not None
        for move, one in parts:
            value = text[one.inner : one.end].decode() if tree is not None else _VALUE
            place, in_item = move.put[1:], any(isinstance(step, Item) for step in move.put)
            is_sure = move.field.required or self._is_present(one.value)
            if isinstance(one.value, ast.pattern):
                is_sure = not in_item and (_refuses_none(one.value) or _ABSENT not in move.text)
            elif not is_sure and isinstance(place[0], Item):
                item = expression(new, field.type, _put(None, place, Code("value")), _CLASS)[1:-1]
                tree = [*(tree or ()), Code(f"*({item} for value in [{value}] if value is not None)")]
                continue
            if not is_sure and (
                isinstance(one.value, ast.pattern) or not fits(new, field.type, _put(None, place[:-1], {}))
            ):
                raise Unfit("the value may be absent")
            tree = _put(tree, place, Code(value))
        return expression(new, field.type, tree, _CLASS)

    def _is_present(self, value: ast.AST) -> bool:
        """Return True if an expression has a value other than `None` for certain."""
        name = ast.unparse(value.func).rpartition(".")[2] if isinstance(value, ast.Call) else ""
        is_value = isinstance(value, ast.Constant) and value.value is not None
        return (
            is_value or isinstance(value, _PRESENT) or name in {*self._old.protocol.definitions, "str", "list", "dict"}
        )

    def needed(
        self, definition: str, name: str, module: Module, call: ast.Call, package: str
    ) -> tuple[Span, ...] | None:
        """Return the edit that gives a constructor a member by a rule; None if another value moves there."""
        owner = Ref(self._names[definition])
        field = next(one for one in self._new.fields_of(owner) if self._new.attribute(owner, one.wire) == name)
        rule = self._rule(definition, field.wire)
        moves = (self.moves.get((definition, one.arg or "")) for one in call.keywords)
        if any(one is not None and one.put[0] == field.wire for one in moves):
            return None
        if rule is None or rule.action != "give" or call.args or not fits(self._new, field.type, rule.value):
            return ()
        start = module.utf8.index(b"(", module.end(call.func)) + 1
        space = "" if module.utf8[start : start + 1] in b"\r\n" else " "
        text = f"{name}={expression(self._new, field.type, rule.value, _CLASS)},{space}"
        return self._placed(((start, start, text),), module, call.func, package)

    def _placed(self, texts: Iterable[Text], module: Module, owner: ast.expr, package: str) -> tuple[Span, ...]:
        """Return edits in which classes have the names that a module knows them by; none if it cannot import them."""
        classes = dict.fromkeys(re.findall(f"{_CLASS}(\\w+)", "".join(text for _, _, text in texts)))
        is_named = isinstance(owner, ast.Attribute) and owner.attr in self._old.protocol.definitions
        prefix = ast.unparse(owner).rpartition(".")[0] + "." if is_named else None if classes else ""
        spans, last = list[Span](), package.rpartition(".")[2]
        nodes = [one for one in module.tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
        for node, alias in ((one, alias) for one in nodes for alias in one.names if not is_named):
            where = f".{node.module}." if isinstance(node, ast.ImportFrom) else "."
            name, known = f"{where}{alias.name}", alias.asname or alias.name
            if name.endswith((f".{last}.types", f".{last}")):
                prefix = f"{known}." if name.endswith(".types") else f"{known}.types."
            elif where.endswith(f".{last}.types.") and not prefix:
                names, end = {one.name for one in node.names}, module.end(node.names[-1])
                spans = [(end, end, f", {one}".encode()) for one in classes if one not in names and "*" not in names]
                prefix = ""
        placed = ((start, end, text.replace(_CLASS, prefix or "").encode()) for start, end, text in texts)
        return () if prefix is None else (*(spans if not prefix else ()), *placed)


def _read(module: Module, node: ast.Attribute, text: str) -> tuple[Span, ...]:
    """Return the edits that make an attribute the expression `text` of its object."""
    before, *after = text.split(_BASE)
    is_changed = not isinstance(node.ctx, ast.Load) or _CHANGES.match(module.utf8, module.end(node))
    if _ABSENT in text or (is_changed and not _PLAIN.fullmatch(text)):
        return ()
    (start, end), base = module.span(node), ast.unparse(node.value)
    if len(after) == 1:
        spans = (start, start, before.encode()), (end - len(node.attr.encode()), end, after[0][1:].encode())
        return spans if before else spans[1:]
    return ((start, end, text.replace(_BASE, base).encode()),) if re.fullmatch(r"[\w.]+", base) else ()


def _keywords(module: Module, call: ast.Call | ast.MatchClass) -> Iterator[Given]:
    """Yield the keywords of a constructor or a class pattern; the name of unclear ones is empty."""
    text = module.utf8
    if isinstance(call, ast.Call):
        for one in call.keywords:
            found = GIVEN.match(text, module.start(one)) if one.arg is not None else None
            start, inner = found.span() if found is not None else (0, 0)
            yield Given(one.arg or "", one.value, start, inner, module.end(one))
        return
    for name, pattern in zip(call.kwd_attrs, call.kwd_patterns, strict=True):
        inner = module.start(pattern)
        before = re.search(rb"\b\w+\s*=\s*$", text[:inner])
        yield Given(name if before else "", pattern, before.start() if before else 0, inner, module.end(pattern))


def _refuses_none(pattern: ast.pattern) -> bool:
    match pattern:
        case ast.MatchAs(pattern=inner):
            return inner is not None and _refuses_none(inner)
        case ast.MatchOr(patterns):
            return all(map(_refuses_none, patterns))
        case _:
            return not isinstance(pattern, ast.MatchSingleton)


def _without(text: bytes, one: Given) -> Iterator[Text]:
    """Yield the edits that remove a keyword with the comma before it, or else after it; comments stay."""
    before = re.search(rb",\s*$", text[: one.start])
    yield before.start() if before is not None else one.start, one.end, ""
    after = COMMA.match(text, one.end) if before is None else None
    if after is not None:
        yield after.end() - 1, after.end(), ""


def _put(tree: Any, place: Place, leaf: Any) -> Any:
    """Return the JSON value `tree` with a value at a place below it."""
    if not place:
        return leaf
    step, rest = place[0], place[1:]
    if isinstance(step, Item):
        return [*(tree or ()), _put(dict(step.members), rest, leaf)]
    if step == ONLY_ITEM:
        return [_put(None, rest, leaf)]
    members: dict[str, Any] = tree or {}
    return {**members, step: _put(members.get(step), rest, leaf)}
