"""Notes what a file uses of the bindings, and what became of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mcp_bindgen.protocol import naming

from .calls import WHOLE, CallEffects
from .effect import Effect
from .handlers import HandlerEffects
from .pair import Pair
from .surface import Owner
from .types import TypeEffects
from .values import Data, Value
from .views import View

Given = Mapping[int, Value | None]
"""The id of an argument's expression -> what it is."""


@dataclass(frozen=True)
class Place:
    """A place in a file; lines and columns begin with 1, columns count characters."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Use:
    """A use of something that is gone, renamed or changed.

    Attributes:
        place: Where.
        name: What is used, e.g. `types.Tool`, `types.Tool.annotations`, `types.Tool(annotations=)`, `Client.call_tool`.
        effect: What became of it.
        certain: Whether it is clear that it is this that is used.
    """

    place: Place
    name: str
    effect: Effect
    certain: bool


class Rules:
    """All that is known about the two revisions."""

    def __init__(self, pair: Pair) -> None:
        self.pair, self.old = pair, pair.old
        self.types, self.calls, self.handlers = TypeEffects(pair), CallEffects(pair), HandlerEffects(pair)


class Notes:
    """The uses in one file.

    Args:
        rules: What is known about the two revisions.
        file: The file's name.
        source: Its text.
    """

    def __init__(self, rules: Rules, file: str, source: str) -> None:
        self.rules, self.file = rules, file
        self._lines = source.splitlines()
        self._found: dict[Use, None] = {}
        self.imports: list[Place] = []

    @property
    def uses(self) -> list[Use]:
        """What was found, in the order of the file."""
        return sorted(self._found, key=lambda use: (use.place.line, use.place.column, use.name, not use.certain))

    # --- places -------------------------------------------------------------------------------------------------

    def place(self, line: int, offset: int) -> Place:
        """A place in this file, of an offset in bytes."""
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return Place(self.file, line, len(text.encode()[:offset].decode(errors="ignore")) + 1)

    def start(self, node: ast.expr | ast.keyword | ast.alias | ast.pattern) -> Place:
        """Where something begins."""
        return self.place(node.lineno, node.col_offset)

    def tail(self, node: ast.Attribute) -> Place:
        """Where the name of an attribute stands."""
        line, end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return self.place(line, end - len(node.attr.encode()))

    def header(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Place:
        """Where the name of a function stands."""
        text = self._lines[node.lineno - 1] if node.lineno <= len(self._lines) else ""
        found = text.find(node.name, text.find("def ", node.col_offset))
        return Place(self.file, node.lineno, max(found, 0) + 1)

    # --- what is used -------------------------------------------------------------------------------------------

    def imported(self, place: Place) -> None:
        """Notes that the bindings are imported."""
        if place not in self.imports:
            self.imports.append(place)

    def add(self, place: Place, name: str, effects: Iterable[Effect], *, sure: bool = True) -> None:
        """Notes a use of something, if anything became of it."""
        for effect in effects:
            self._found[Use(place, name, effect, sure)] = None

    def type(self, place: Place, definition: str) -> None:
        """Notes the name of a definition."""
        self.add(place, f"types.{definition}", self.rules.types.name(definition))

    def read(self, place: Place, definition: str, field: str, *, sure: bool = True) -> None:
        """Notes that a field is read."""
        self.add(place, f"types.{definition}.{field}", self.rules.types.read(definition, field), sure=sure)

    def constructed(self, node: ast.Call, definition: str, values: Given, *, own: bool = False) -> None:
        """Notes the arguments of a constructor; what is missing is certain unless a class of the user's may give it."""
        fields = self.rules.old.fields(definition)
        given = {keyword.arg: keyword for keyword in node.keywords}
        for name, keyword in given.items():
            if name in fields:
                effects = self.rules.types.written(definition, name, self._view(values[id(keyword.value)]))
                self.add(self.start(keyword), f"types.{definition}({name}=)", effects)
        self.missing(node, f"types.{definition}", self.rules.types.needed(definition), set(given), sure=not own)

    def missing(
        self, node: ast.Call, name: str, needed: dict[str, Effect], given: set[str | None], *, sure: bool
    ) -> None:
        """Notes what a call does not give although it is needed now."""
        open_ended = None in given or any(isinstance(argument, ast.Starred) for argument in node.args)
        for argument, effect in needed.items():
            if argument not in given:
                place = self.tail(node.func) if isinstance(node.func, ast.Attribute) else self.start(node)
                self.add(place, f"{name}({argument}=)", [effect], sure=sure and not open_ended)

    def called(self, node: ast.Call, owner: Owner, stub: str, values: Given, *, sure: bool = True) -> None:
        """Notes the arguments of a call."""
        rules, name = self.rules.calls, f"{owner}.{stub}"
        if (owner, stub) not in self.rules.old.calls:
            return
        given: set[str | None] = {keyword.arg for keyword in node.keywords}
        for keyword in node.keywords:
            if keyword.arg is not None:
                effects = rules.argument(owner, stub, keyword.arg, self._view(values[id(keyword.value)]))
                self.add(self.start(keyword), f"{name}({keyword.arg}=)", effects, sure=sure)
        names = self._positions(owner, stub)
        for index, argument in enumerate(node.args[: len(names)]):
            if isinstance(argument, ast.Starred):
                break
            given.add(names[index])
            label, view = f"{name}({names[index]}=)", self._view(values[id(argument)])
            self.add(self.start(argument), label, rules.position(owner, stub, index, view), sure=sure)
        self.missing(node, name, rules.needed(owner, stub), given, sure=sure)

    def _positions(self, owner: Owner, stub: str) -> Sequence[str]:
        """The arguments of an old call in the order of their positions."""
        return list(self.rules.calls.arguments(owner, stub)) or [WHOLE]

    def stub(self, place: Place, owner: Owner, name: str, *, sure: bool = True) -> None:
        """Notes that a call is named."""
        if (owner, name) in self.rules.old.calls:
            self.add(place, f"{owner}.{name}", self.rules.calls.call(owner, name), sure=sure)
        elif (owner, name) in self.rules.old.walks:
            self.add(place, f"{owner}.{name}", self.rules.calls.walk(owner, name), sure=sure)
        elif (owner, name) in self.rules.old.handlers:
            effects = self.rules.handlers.handler(owner, name)
            self.add(place, f"{owner}.{name}", [one for one in effects if one.kind != "changed"], sure=sure)

    def handler(self, place: Place, owner: Owner, name: str, params: Value | None, result: Value | None) -> None:
        """Notes that a handler is overridden, which may say itself what it takes and what it answers."""
        if (owner, name) in self.rules.old.handlers:
            effects = self.rules.handlers.handler(owner, name, self._view(params), self._view(result))
            self.add(place, f"{owner}.{name}", effects)

    def _view(self, value: Value | None) -> View | None:
        """What a value may be, where that is certain."""
        return self.rules.pair.before.of(value.type) if isinstance(value, Data) and value.sure else None

    def question(self, place: Place, params: str, *, sure: bool = True) -> None:
        """Notes that something is asked with `Context.ask`."""
        if params in self.rules.old.questions:
            self.add(place, f"Context.ask({params})", self.rules.handlers.question(params), sure=sure)

    def asked(self, place: Place, *, sure: bool = True) -> None:
        """Notes that `Context.ask` is named: it is gone where nothing can be asked."""
        if not self.rules.pair.new.questions:
            for params in self.rules.old.questions:
                self.add(place, "Context.ask", self.rules.handlers.question(params)[:1], sure=sure)
                return

    def method(self, place: Place, name: str, *, only_name: bool = False) -> None:
        """Notes a constant of `methods.py`, of which perhaps nothing but the name of the method is used."""
        if name in self.rules.old.methods:
            effects = self.rules.handlers.method(name)
            self.add(place, f"methods.{name}", [one for one in effects if one.kind != "changed" or not only_name])

    def wire(self, place: Place, method: str) -> None:
        """Notes a method that is looked up by its name on the wire."""
        found = self.rules.old.by_wire.get(method)
        if found is not None:
            effects = self.rules.handlers.method(naming.descriptor(found.stub))
            self.add(place, f"methods.METHODS[{method!r}]", [one for one in effects if one.kind != "renamed"])

    def error(self, place: Place, name: str) -> None:
        """Notes a constant of `errors.py`."""
        if name in self.rules.old.errors:
            self.add(place, f"errors.{name}", self.rules.handlers.error(name))
