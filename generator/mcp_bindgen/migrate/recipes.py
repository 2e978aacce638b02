"""Rewrite uses of members whose values `bridges.toml` moves: its rules, carried out on expressions of Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
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

_PRESENT = (ast.List, ast.Dict, ast.Tuple, ast.ListComp, ast.DictComp, ast.JoinedStr, ast.BinOp, ast.Compare)
_PLAIN = re.compile(rf"{_BASE}[\w.\[\]]+")
_CHANGES = re.compile(rb"\s*\.\s*(append|clear|extend|insert|pop|remove|reverse|sort|update)\(|\s*\[[^\n\]]*\]\s*=[^=]")
_REFUTABLE = (ast.MatchValue, ast.MatchClass, ast.MatchSequence, ast.MatchMapping)


def described(place: Place) -> str:
    """Return a place as readers of code see it: `display.title` or `outputs[].content`."""
    return "".join(f".{naming.argument(s)}" if isinstance(s, str) and s != ONLY_ITEM else "[]" for s in place)[1:]


class Given(NamedTuple):
    """A keyword of a constructor or a class pattern: its value, and offsets of both in the text."""

    name: str
    value: ast.expr | ast.pattern
    start: int
    inner: int
    end: int


@dataclass(frozen=True)
class Recipes:
    """The rules of a step under the names of Python.

    Attributes:
        old: The old bindings.
        new: The new bindings.
        names: Old name -> new name of definitions.
        rules: The rules.
    """

    old: Bindings
    new: Bindings
    names: Mapping[str, str]
    rules: Rules

    def rule(self, definition: str, wire: str) -> Rule | None:
        """Return the rule for a member of a class, by the name of the class in the old revision."""
        name = self.old.protocol.schema_names.get(definition, definition)
        return self.rules.get((name, wire)) or self.rules.get((ANY, wire))

    def moved(self, definition: str, name: str) -> tuple[Rule, Field] | None:
        """Return the rule that moves a value from a member of a class into another member, and the old member."""
        for one in self.old.fields(definition) if definition in self.names else ():
            rule = self.rule(definition, one.field.wire) if one.name == name else None
            if rule is not None and rule.take == (one.field.wire,) and len(rule.put) > 1:
                with suppress(Unfit):
                    self._leaf(Ref(self.names[definition]), rule.put)
                    return rule, one.field
        return None

    def renamed(self, definition: str, new: str) -> str:
        """Return the old name of a member of a class, which a rule may rename."""
        rules = ((one.field.wire, self.rule(definition, one.field.wire)) for one in self.old.fields(definition))
        return next((wire for wire, rule in rules if rule is not None and rule.put == (new,)), new)

    @property
    def kept(self) -> Iterator[tuple[str, str]]:
        """The members of new classes whose name stays although their value moves inside of them."""
        for definition, new in self.names.items():
            for one in self.old.fields(definition):
                found = self.moved(definition, one.name)
                if found is not None and found[0].put[0] == one.field.wire:
                    yield new, one.name

    @property
    def inline(self) -> dict[str, str]:
        """Inline class of a moved member -> the class in its new place."""
        found: dict[str, str] = {}
        for definition, new in self.names.items():
            for old in self.old.fields(definition):
                rule, type = self.moved(definition, old.name), old.field.type
                if rule is not None and isinstance(type, Ref) and self.old.protocol.definitions[type.name].inline:
                    leaf = self._leaf(Ref(new), rule[0].put)
                    found |= {type.name: leaf.name} if isinstance(leaf, Ref) else {}
        return found

    def _leaf(self, type: Type, place: Place) -> Type:
        """Return the type of the values at a place; raise `Unfit` if there is no such place."""
        for index, step in enumerate(place):
            if step == ONLY_ITEM or isinstance(step, Item):
                type = self._items(type)
            if isinstance(step, Item):
                type = self._variant(type, step, place[index + 1 :])
            elif step != ONLY_ITEM:
                field = self.new.protocol.field_of(type, step)
                if field is None:
                    raise Unfit(f"{type} has no {step}")
                type = field.type
        return type

    def _variant(self, type: Type, item: Item, rest: Place) -> Type:
        """Return the alternative of a union that an item is; raise `Unfit` if it is none."""
        union, value = self.new.protocol.resolve(type), _put(dict(item.members), rest, Code(""))
        for one in union.members if isinstance(union, Union) else (type,):
            if fits(self.new.protocol, one, value):
                return one
        raise Unfit(f"{value!r} is no {type}")

    def read(self, definition: str, name: str) -> str | None:
        """Return the expression that reads a moved member of an object, `\3`; None if there is none for all objects."""
        found = self.moved(definition, name)
        if found is None:
            return None
        text, old = self._read(_BASE, Ref(self.names[definition]), found[0].put), found[1]
        absent = "[]" if isinstance(self.old.protocol.resolve(old.type), Array) else _ABSENT
        text = text.replace(_ABSENT, absent if old.required else "None")
        return text if _ABSENT not in text else None

    def needed(self, definition: str, name: str, module: Module, call: ast.Call, package: str) -> tuple[Span, ...]:
        """Return the edits that give a constructor the value of a rule for a member that it lacks."""
        field = next(one.field for one in self.new.fields(self.names[definition]) if one.name == name)
        rule = self.rule(definition, field.wire)
        moves = (self.moved(definition, one.name) for one in keywords(module, call))
        if rule is None or rule.action != "give" or any(one and one[0].put[0] == field.wire for one in moves):
            return ()
        try:
            value = expression(self.new.protocol, field.type, rule.value, _CLASS)
        except Unfit:
            return ()
        end = module.end(call) - 1
        before = module.utf8[:end].rstrip()
        margin = module.utf8[module.utf8.rfind(b"\n", 0, end) + 1 : end]
        text = f"{name}={value}"
        if margin.strip():
            text = f"{'' if before.endswith((b'(', b',')) else ', '}{text})"
        else:
            text = f"    {'' if before.endswith(b',') else ', '}{text},\n{margin.decode()})"
        return self._placed(((end, end + 1, text),), module, call.func, package)

    def given(self, definition: str, module: Module, call: ast.Call | ast.MatchClass, package: str) -> tuple[Span, ...]:
        """Return the edits of all moved keywords of a constructor or a class pattern; none if one is unclear."""
        owner, groups, spans = Ref(self.names[definition]), dict[str, list[tuple[Rule, Field, Given]]](), list[Text]()
        given = list(keywords(module, call))
        for one in given:
            found = self.moved(definition, one.name)
            if found is not None:
                groups.setdefault(str(found[0].put[0]), []).append((*found, one))
        for wire, parts in groups.items():
            field = self.new.protocol.field_of(owner, wire)
            others = {one.name for one in given} - {one.name for _, _, one in parts}
            if field is None or (name := self.new.protocol.attribute(owner, wire)) in others or "" in others:
                return ()
            try:
                tree: Any = None
                for index, (rule, old, one) in enumerate(parts):
                    text = module.utf8[one.inner : one.end].decode() if index else _VALUE
                    tree = self._added(tree, field.type, rule.put[1:], one.value, text, is_required=old.required)
                before, after = expression(self.new.protocol, field.type, tree, _CLASS).split(_VALUE)
            except Unfit:
                return ()
            (*_, first), *more = parts
            spans += [(first.start, first.inner, f"{name}={before}"), (first.end, first.end, after)]
            spans += [span for *_, one in more for span in _without(module.utf8, one)]
        return self._placed(spans, module, call.func if isinstance(call, ast.Call) else call.cls, package)

    def _added(
        self, tree: Any, type: Type, place: Place, value: ast.expr | ast.pattern, text: str, *, is_required: bool
    ) -> Any:
        """Return the JSON `tree` with a value, as code, at a place; raise `Unfit` if the value may be absent there."""
        new, starts = self.new.protocol, place[0]
        if isinstance(value, ast.pattern):
            is_sure = _ABSENT not in (self._read("", type, place)) or (
                isinstance(value, _REFUTABLE) and not any(isinstance(step, Item) for step in place)
            )
        else:
            is_sure = is_required or self._is_present(value)
            if not is_sure and isinstance(starts, Item):
                item = expression(new, self._items(type), _put(dict(starts.members), place[1:], Code("value")), _CLASS)
                return [*(tree or ()), Code(f"*({item} for value in [{text}] if value is not None)")]
            is_sure = is_sure or fits(new, type, _put(None, place[:-1], {}))
        if not is_sure:
            raise Unfit("the value may be absent")
        return _put(tree, place, Code(text))

    def _is_present(self, value: ast.expr) -> bool:
        """Return whether an expression has a value other than `None` for certain."""
        match value:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                return name in self.old.protocol.definitions or name in ("str", "list", "dict", "len")
            case ast.Constant(value=constant):
                return constant is not None
            case _:
                return isinstance(value, _PRESENT)

    def _read(self, base: str, type: Type, place: Place) -> str:
        """Return the expression of the value at a place below `base`."""
        if not place:
            return base
        new, step, rest = self.new.protocol, place[0], place[1:]
        if isinstance(step, Item):
            kind = self._variant(self._items(type), step, rest)
            fields = [field for field in new.fields_of(kind) if field.wire in step.members]
            tags = [field for field in fields if field.constant is not None] or fields
            values = ((one, expression(new, one.type, step.members[one.wire], _CLASS)) for one in tags)
            tests = " and ".join(f"item.{new.attribute(kind, one.wire)} == {value}" for one, value in values)
            return f"next(({self._read('item', kind, rest)} for item in {base} if {tests or True}), {_ABSENT})"
        if step == ONLY_ITEM:
            return self._read(f"{base}[0]", self._items(type), rest)
        field = new.field_of(type, step)
        assert field is not None  # `moved` has seen it
        base = f"{base}.{new.attribute(type, step)}"
        text = self._read(base, field.type, rest)
        return text if field.required or not rest else f"({text} if {base} is not None else {_ABSENT})"

    def _items(self, type: Type) -> Type:
        """Return the type of the items of an array; raise `Unfit` for another type."""
        array = self.new.protocol.resolve(type)
        if not isinstance(array, Array):
            raise Unfit(f"{type} is no array")
        return array.items

    def _placed(self, texts: Iterable[Text], module: Module, owner: ast.expr, package: str) -> tuple[Span, ...]:
        """Return edits in which classes have the names that a module knows them by; none if it cannot import them."""
        classes = dict.fromkeys(re.findall(f"{_CLASS}(\\w+)", "".join(text for _, _, text in texts)))
        spans: list[Span] = []
        prefix: str | None = None if classes else ""
        if isinstance(owner, ast.Attribute) and owner.attr in self.old.protocol.definitions:
            prefix = f"{ast.unparse(owner.value)}."
        last = package.rpartition(".")[2]
        nodes = (
            [one for one in module.tree.body if isinstance(one, ast.Import | ast.ImportFrom)] if prefix is None else []
        )
        for node, alias in ((one, alias) for one in nodes for alias in one.names):
            where = f".{node.module}." if isinstance(node, ast.ImportFrom) else "."
            name, known = f"{where}{alias.name}", alias.asname or alias.name
            if name.endswith((f".{last}.types", f".{last}")):
                prefix = f"{known}." if name.endswith(".types") else f"{known}.types."
            elif where.endswith(f".{last}.types.") and prefix is None:
                names, end = {one.name for one in node.names}, module.end(node.names[-1])
                spans = [(end, end, f", {one}".encode()) for one in classes if one not in names and "*" not in names]
                prefix = ""
        placed = ((start, end, text.replace(_CLASS, prefix or "").encode()) for start, end, text in texts)
        return () if prefix is None else (*(spans if not prefix else ()), *placed)


def spelled(module: Module, node: ast.expr, name: str, text: str) -> tuple[Span, ...]:
    """Return the edits that make an attribute the expression `text` of its object; none if that is not sound."""
    before, *after = text.split(_BASE)
    is_stored = not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load)
    is_stored = is_stored or _CHANGES.match(module.utf8, module.end(node)) is not None
    if not isinstance(node, ast.Attribute) or node in module.formatted or (is_stored and not _PLAIN.fullmatch(text)):
        return ()
    (start, end), last = module.span(node), module.end(node) - len(name.encode())
    if len(after) == 1:
        return (
            *([(start, start, before.encode())] if before else ()),
            (last, end, after[0].removeprefix(".").encode()),
        )
    base = ast.unparse(node.value)
    return ((start, end, text.replace(_BASE, base).encode()),) if re.fullmatch(r"[\w.]+", base) else ()


def keywords(module: Module, call: ast.Call | ast.MatchClass) -> Iterator[Given]:
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
        before = re.search(rb"\b\w+\s*=\s*$", text[module.start(call) : inner])
        start = module.start(call) + before.start() if before is not None else inner
        yield Given(name if before is not None else "", pattern, start, inner, module.end(pattern))


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
    return {**(tree or {}), step: _put((tree or {}).get(step), rest, leaf)}
