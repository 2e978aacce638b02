"""Declarations of the tools of a server for the context of a model: names, types and one line of description each.

The types are exact; comments state what a language cannot express. To fit a budget of tokens, descriptions become
shorter, then arguments that tools share become types with a name, and then the last tools are listed by name only.
"""

from __future__ import annotations

import json
import keyword
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from itertools import combinations
from textwrap import shorten
from typing import NamedTuple
from unicodedata import normalize

from mcp_bindgen.app.search import search
from mcp_bindgen.app.validation import Validator
from mcp_bindgen.emit.python.annotations import PLAIN, spelled
from mcp_bindgen.emit.python.environment import docstring
from mcp_bindgen.emit.python.imports import carried, imports, local, resolved, use
from mcp_bindgen.emit.typescript import names as typescript
from mcp_bindgen.emit.typescript.package import comment
from mcp_bindgen.emit.typescript.types import type_text
from mcp_bindgen.ir.constants import is_literal
from mcp_bindgen.ir.model import (
    Const,
    Definition,
    Map,
    Object,
    Ref,
    Scalar,
    Tuple,
    Type,
    is_implied,
    map_parts,
    references,
    union_of,
)
from mcp_bindgen.ir.naming import free, unicode_pascal
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.errors import printable

from ..exact import NEVER, exact_contract
from ..model import Contract, Entry
from ..names import entry_names
from .python_contract import stub
from .typed_client import title_of

TITLE = "Tools of the server"
"""First words of all declarations."""


class Language(StrEnum):
    """Language of declarations."""

    PYTHON = "python"
    TYPESCRIPT = "typescript"


class Declarations(NamedTuple):
    """Declarations of tools.

    Attributes:
        text: The module.
        tokens: Estimated number of tokens.
        by_name: Names of the tools that it lists by name only.
    """

    text: str
    tokens: int
    by_name: Sequence[str]


class _Detail(NamedTuple):
    """Maximum of characters of descriptions of tools and members; True if shared arguments get a type with a name."""

    words: int
    member_words: int = 0
    is_folded: bool = False


class _Member(NamedTuple):
    """Member of an object or argument of a tool: its type as text, and what the type does not express."""

    wire: str
    required: bool
    text: str
    note: str


_DETAILS = (_Detail(88, 60), _Detail(88), _Detail(60), _Detail(30), _Detail(30, is_folded=True))
_IMPORTED = ("Any", "Literal", "Never", "NotRequired", "TypeAliasType", "TypedDict", "Unpack")
_OWN = ("Content", "Integer", "Promise")
_NAMES = {"Integer": "Integer", "Never": use("typing", "Never")}
_MIN_SAVED_CHARS = 40
_DIRECTIVE = re.compile(r"^(fmt|isort|mypy|noqa|pylint|pyright|ruff|type)\b", re.IGNORECASE)
_PART = re.compile(
    r"(?P<word>[A-Z]?[a-z]+|[A-Z]+)|(?P<digits>\d+)|(?P<space>\n\s*)|(?P<signs>[^\s\w]+|_)|(?P<other>\S)"
)
_CHARACTERS_OF_TOKEN = {"word": 8, "digits": 3, "space": 10**9, "signs": 2, "other": 1}
_CONTENT = "type Content = Promise<{ type: string; text?: string; [member: string]: unknown }[]>;\n"
_PYTHON = {**PLAIN, "any": use("typing", "Any"), "number": "float"}


def estimated_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text, which is rarely less than tokenizers for models count.

    There is a token for eight letters of a word, a capital beginning a new word, for three digits, for two signs, for
    the end of a line with the indentation after it, and for each byte of other characters.
    """
    parts = ((part.lastgroup or "", len(part[0].encode())) for part in _PART.finditer(text))
    return sum(-(-size // _CHARACTERS_OF_TOKEN[kind]) for kind, size in parts)


def declarations(contract: Contract, language: Language, budget: int | None = None, select: str = "") -> Declarations:
    """Return the declarations of the tools of a contract.

    Args:
        contract: The contract.
        language: The language.
        budget: Maximum of estimated tokens; by default there is none.
        select: Words that the tools should fit, the best first; by default all tools are declared.

    Raises:
        BadInput: No tool fits the words, or even the names of the tools exceed the budget.
    """
    writer = (_Python if language is Language.PYTHON else _TypeScript)(contract)
    tools: Sequence[Entry] = writer.contract.tools
    if select:
        tools = [tools[index] for index in search(select, [tool.raw for tool in tools], limit=len(tools))]
        if not tools:
            raise BadInput(f"no tool fits {select!r}", fix="use words of the names or descriptions of tools")
    for detail in _DETAILS:
        found = writer.declarations(tools, len(tools), detail)
        if budget is None or found.tokens <= budget:
            return found
    last, counts = _DETAILS[-1], range(len(tools))
    fitting = bisect_right(counts, budget or 0, key=lambda count: writer.declarations(tools, count, last).tokens)
    if not fitting:
        raise BadInput("the names of the tools exceed the budget", fix="use a larger --budget, or --select")
    return writer.declarations(tools, fitting - 1, last)


class _Writer(ABC):
    """Writer of declarations in one language.

    Attributes:
        max_groups: Maximum of groups of shared arguments of a tool.
        labels: Definition -> name of its type.
        notes: What the types of the current tool or member do not express.
    """

    max_groups = 1

    def __init__(self, contract: Contract) -> None:
        self.contract, self._limits = exact_contract(contract, (*_IMPORTED, *_OWN))
        self.types = self.contract.types
        self.labels = {name: name for name in self.types.definitions}
        self.notes: list[str] = []
        self._recursive = {
            name for name, one in self.types.definitions.items() if name in self.types.reach(references(one.type))
        }

    def declarations(self, tools: Sequence[Entry], count: int, detail: _Detail) -> Declarations:
        """Return declarations of the first tools; all further tools are listed by name only."""
        shown, by_name = tools[:count], [tool.name for tool in tools[count:]]
        self.detail, self._lines = detail, dict[str, str]()
        self._known: dict[str, str] = {}
        self._groups: dict[str, dict[str, Sequence[_Member]]] = {}
        self._groups = self._grouped(shown) if detail.is_folded else {}
        for group in self._groups.values():
            self._lines |= {name: self.declared(name, Object(()), self.object(one)) for name, one in group.items()}
        self.take_notes()
        functions = [*map(self.function, shown)]
        title = f"{TITLE} `{title_of(self.contract, 'server')}`."
        more = f"More tools, whose types are not declared here: {', '.join(by_name)}" if by_name else ""
        text = self.module(title, [*self._lines.values()], functions, more)
        return Declarations(text, estimated_tokens(text), by_name)

    def reference(self, name: str) -> str:
        """Return the text for a reference: a name, or the type of a definition that needs no name."""
        if name in _NAMES:
            return _NAMES[name]
        definition, label = self.types.definitions[name], self.labels[name]
        if name in self._recursive:
            if name not in self._lines:
                self._lines[name] = ""
                self._lines[name] = self.declared(label, definition.type, self._body(definition))
            return label
        body = self._body(definition)
        if not self.has_name(definition):
            return body
        known = self._known.setdefault(body, label)
        self._lines.setdefault(known, self.declared(known, definition.type, body))
        return known

    def _body(self, definition: Definition) -> str:
        limits = self._limits.get((definition.name, ""), [])
        if isinstance(definition.type, Object):
            return self.object(self._members(definition.name), definition.type.extra, "; ".join(limits))
        self.notes += limits
        return self.text(definition.type)

    def _members(self, name: str) -> list[_Member]:
        """Return the members of an object."""
        found: list[_Member] = []
        for field in self.types.fields_of(Ref(name)):
            outer, self.notes = self.notes, list(self._limits.get((name, field.wire), ()))
            text, words = self.text(field.type), _line(field.doc, self.detail.member_words)
            found.append(_Member(field.wire, field.required, text, "; ".join(filter(None, [words, *self.notes]))))
            self.notes = outer
        return found

    def arguments(self, tool: Entry) -> tuple[Object | None, list[_Member], list[str]]:
        """Return the type of the arguments of a tool, those beside its groups, and the names of the groups."""
        name = tool.arguments
        type = self.types.definitions[name].type
        type = Object(()) if isinstance(type, Map) and is_implied(type.values) else type
        if not isinstance(type, Object) or name in self._recursive:
            return None, [], []
        self.notes += self._limits.get((name, ""), ())
        groups = self._groups.get(tool.name, {})
        folded = [one for members in groups.values() for one in members]
        return type, [one for one in self._members(name) if one not in folded], [*groups]

    def _grouped(self, tools: Sequence[Entry]) -> dict[str, dict[str, Sequence[_Member]]]:
        """Return tool -> name and members of each group of arguments that it shares, the largest saving first."""
        found = {tool.name: self.arguments(tool) for tool in tools}
        left = {name: members for name, (type, members, _) in found.items() if type and not _others(type.extra)}
        groups: dict[str, dict[str, Sequence[_Member]]] = {name: {} for name in left}
        taken = {*self.labels.values(), *_IMPORTED, *_OWN}
        while True:
            sets = {name: frozenset(members) for name, members in left.items()}
            pairs = dict.fromkeys(a & b for a, b in combinations(sets.values(), 2))
            users = {both: [name for name, members in sets.items() if both <= members] for both in pairs}
            saved = {both: (len(users[both]) - 1) * sum(len(one.wire + one.text) for one in both) for both in pairs}
            most = max(saved, key=saved.__getitem__, default=frozenset[_Member]())
            if saved.get(most, 0) < _MIN_SAVED_CHARS:
                return groups
            best = [one for one in left[users[most][0]] if one in most]
            label = free("".join(unicode_pascal(one.wire) for one in best[:2]) or "Shared", taken)
            taken.add(label)
            for user in users[most]:
                groups[user][label] = best
                left[user] = [one for one in left[user] if one not in best and len(groups[user]) < self.max_groups]

    def take_notes(self) -> str:
        """Return the notes so far, and begin anew."""
        found, self.notes = "; ".join(dict.fromkeys(self.notes)), []
        return found

    @abstractmethod
    def has_name(self, definition: Definition) -> bool:
        """Return whether a definition without recursion gets a name."""

    @abstractmethod
    def text(self, type: Type) -> str:
        """Return a type."""

    @abstractmethod
    def object(self, members: Sequence[_Member], extra: Type | None = None, limits: str = "") -> str:
        """Return the body of an object."""

    @abstractmethod
    def declared(self, name: str, type: Type, body: str) -> str:
        """Return the declaration of a type."""

    @abstractmethod
    def function(self, tool: Entry) -> str:
        """Return the declaration of a tool."""

    @abstractmethod
    def module(self, title: str, types: Sequence[str], functions: Sequence[str], by_name: str) -> str:
        """Return the whole text."""


class _TypeScript(_Writer):
    max_groups = 9

    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self.labels = typescript.types(self.types)
        roots = [name for tool in self.contract.tools for name in (tool.arguments, tool.output)]
        uses = Counter([*roots, *(name for one in self.types.definitions.values() for name in references(one.type))])
        self._roots = {name for name in roots if uses[name] == 1}

    def has_name(self, definition: Definition) -> bool:
        return not definition.inline and definition.name not in self._roots

    def text(self, type: Type) -> str:
        named = _with_integers(type)
        return type_text(named, {name: self.reference(name) for name in references(named)}, None)

    def object(self, members: Sequence[_Member], extra: Type | None = None, limits: str = "") -> str:
        shown = [
            f"{typescript.key(one.wire)}{'' if one.required else '?'}: {one.text}{_remark(one.note)}" for one in members
        ]
        if others := _others(extra):
            parts = [self.text(others), *(one.text for one in members)]
            parts += [] if all(one.required for one in members) else ["undefined"]
            index = "unknown" if "unknown" in parts else " | ".join(dict.fromkeys(parts))
            shown.append(f"[member: string]: {index}{_remark(f'others: {parts[0]}' if parts[0] != index else '')}")
        elif not members:
            shown.append(f"[member: string]: {'never' if extra is None else 'unknown'}")
        return f"{{ {'; '.join(shown)} }}{_remark(limits)}"

    def declared(self, name: str, type: Type, body: str) -> str:
        return f"type {name} = {body};"

    def function(self, tool: Entry) -> str:
        name, result = tool.arguments, tool.output
        type, members, parts = self.arguments(tool)
        if type is None:
            parts.append(self.text(Ref(name)))
        elif members or _others(type.extra):
            parts.append(self.object(members, type.extra))
        sign = "" if Validator(tool.raw["inputSchema"], "the arguments").problems({}, "") else "?"
        taken = f"args{sign}: {' & '.join(parts)}" if parts else ""
        given = f"Promise<{self.text(Ref(result))}>" if result else "Content"
        doc = comment(_line(tool.description, self.detail.words), "  ")
        return f"{doc}  {typescript.key(tool.name)}({taken}): {given};{_remark(self.take_notes())}"

    def module(self, title: str, types: Sequence[str], functions: Sequence[str], by_name: str) -> str:
        body = "\n".join([*types, "declare const tools: {", *functions, "};"])
        known = {"Integer": "type Integer = number;\n", "Content": _CONTENT}
        used = "".join(line for word, line in known.items() if re.search(rf"\b{word}\b", body))
        return f"{comment(title)}{used}{body}\n{comment(by_name)}"


class _Python(_Writer):
    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self._stubs = entry_names(contract, stub, "_")

    def has_name(self, definition: Definition) -> bool:
        return isinstance(definition.type, Object)

    def text(self, type: Type) -> str:
        return spelled(self._plain(type), self.reference, _PYTHON)

    def _plain(self, type: Type) -> Type:
        """Return a type without constants that `Literal` cannot have; they are added to the notes."""
        if type == NEVER:
            return Ref("Never")
        if isinstance(type, Tuple) and type.rest is not None:
            self.notes.append(f"first {', '.join(local(self.text(one)) for one in type.prefix)}")
        if not isinstance(type, Const) or all(map(is_literal, type.values)):
            return map_parts(type, self._plain)
        self.notes.append(f"one of {', '.join(map(json.dumps, type.values))}")
        kept = tuple(value for value in type.values if is_literal(value))
        return union_of([*([Const(kept)] if kept else []), Scalar("number")])

    def object(self, members: Sequence[_Member], extra: Type | None = None, limits: str = "") -> str:
        others = _others(extra)
        notes = [f"others: {local(self.text(others))}"] if others else []
        notes += [f"member without a name: {local(one.text)}" for one in members if not one.wire]
        optional = use("typing_extensions", "NotRequired")
        named = [(one, one.text if one.required else f"{optional}[{one.text}]") for one in members if one.wire]
        head = _hash("; ".join(filter(None, [*notes, limits])))
        used = set(re.findall(r"\w+", local(" ".join(text for _, text in named))))
        if named and all(_is_name(one.wire) and one.wire not in used for one, _ in named):
            return "\n".join([f":{head}", *(f"    {one.wire}: {text}{_hash(one.note)}" for one, text in named)])
        lines = [f"    {json.dumps(one.wire)}: {_quoted(text)},{_hash(one.note)}" for one, text in named]
        return "\n".join([f"{{{head}", *lines, "}"])

    def declared(self, name: str, type: Type, body: str) -> str:
        kind = use("typing_extensions", "TypedDict" if isinstance(type, Object) else "TypeAliasType")
        if body.startswith(":"):
            return f"class {name}({kind}){body}"
        return f'{name} = {kind}("{name}", {body if isinstance(type, Object) else _quoted(body)})'

    def function(self, tool: Entry) -> str:
        name, result = tool.arguments, tool.output
        type, members, groups = self.arguments(tool)
        if type is None or not all(_is_name(one.wire) for one in members):
            taken = f"args: {self.text(Ref(name))}"
        else:
            texts = [f"{one.wire}: {one.text}{'' if one.required else ' = ...'}" for one in members]
            self.notes += [f"{one.wire}: {one.note}" for one in members if one.note]
            more = [f"{use('typing_extensions', 'Unpack')}[{one}]" for one in groups]
            more += [self.text(others)] if (others := _others(type.extra)) else []
            names = {one.wire for one in members}
            taken = ", ".join([*(["*", *texts] if texts else []), *(f"**{free('more', names)}: {one}" for one in more)])
        given = self.text(Ref(result)) if result else "Content"
        head = f"async def {self._stubs[tool.pointer]}({taken}) -> {given}:{_hash(self.take_notes())}"
        words = _line(tool.description, self.detail.words)
        return f"{head}\n    {docstring(words) if words else '...'}"

    def module(self, title: str, types: Sequence[str], functions: Sequence[str], by_name: str) -> str:
        start = imports(lambda: "from __future__ import annotations")
        content = f'Content = list[dict[str, {_PYTHON["any"]}]]  # such as {{"type": "text", "text": "..."}}'
        more = [_hash(by_name).lstrip()] if by_name else []
        return resolved("\n".join([docstring(title, 0), start, content, *types, *functions, *more, ""]))


def _line(text: str, max_characters: int) -> str:
    """Return the beginning of the first paragraph of a text as one line."""
    first = re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0]
    return shorten(first, max_characters, placeholder="...") if max_characters else ""


def _is_name(text: str) -> bool:
    """Return True if a text can be the name of an argument or of a member of a class, and stays as it is."""
    return text.isidentifier() and normalize("NFKC", text) == text and not (keyword.iskeyword(text) or text[:2] == "__")


def _others(extra: Type | None) -> Type | None:
    """Return the type of members that an object does not name, if the object states one."""
    return None if extra is None or is_implied(extra) else extra


def _with_integers(type: Type) -> Type:
    """Return a type with a name for integers."""
    return Ref("Integer") if isinstance(type, Scalar) and type.kind == "integer" else map_parts(type, _with_integers)


def _remark(text: str) -> str:
    return f" {comment(text).rstrip()}" if text else ""


def _hash(text: str) -> str:
    """Return a comment that is no directive for a type checker or a linter."""
    plain = _DIRECTIVE.sub(r"- \g<0>", printable(local(text))).replace("#", "\\x23")
    return f"  # {plain}" if text else ""


def _quoted(text: str) -> str:
    return f"{json.dumps(local(text))}{carried(text)}"
