"""Definitions of two revisions side by side, line by line, with links to the definitions that they name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from markupsafe import Markup, escape

from mcp_bindgen.diff.finding import Comparison
from mcp_bindgen.diff.location import NEW, OLD
from mcp_bindgen.ir.model import AnyValue, Const, Definition, Object, Ref, Type, Union, map_parts
from mcp_bindgen.ir.text import describe

_MARK = "\0"
"""Put around the names of definitions within a description: split there, the odd parts are names."""

Links = Mapping[str, str]
"""Name of a definition -> the anchor where the page shows it."""


@dataclass(frozen=True)
class Line:
    """A line of a definition in the old and in the new revision; `None` where it does not exist."""

    old: Markup | None
    new: Markup | None

    @property
    def same(self) -> bool:
        """Whether both revisions say the same."""
        return self.old is not None and self.new is not None and self.old.striptags() == self.new.striptags()


@dataclass(frozen=True)
class Pair:
    """A definition in the old and in the new revision; `None` where it does not exist."""

    sides: tuple[Definition | None, Definition | None]

    @property
    def newest(self) -> Definition:
        """The definition itself, in the newest revision that has it."""
        newest = self.sides[NEW] or self.sides[OLD]
        assert newest is not None, "a pair has at least one side"
        return newest

    def lines(self, links: Sequence[Links]) -> list[Line]:
        """Return the lines of both sides; `links` has one mapping for each revision."""
        old, new = (list(_parts(one.type, known)) if one else [] for one, known in zip(self.sides, links, strict=True))
        found: list[Line] = []
        matcher = SequenceMatcher(None, [key for key, _ in old], [key for key, _ in new], autojunk=False)
        for kind, start, end, new_start, new_end in matcher.get_opcodes():
            was, now = [text for _, text in old[start:end]], [text for _, text in new[new_start:new_end]]
            if kind == "equal":
                found += map(Line, was, now)
            else:
                found += [Line(text, None) for text in was] + [Line(None, text) for text in now]
        return found


def pairs(comparison: Comparison) -> list[Pair]:
    """Return all definitions of both revisions in alphabetical order, each of them once.

    A renamed definition is paired with its new name, as the findings state it.
    """
    old, new = comparison.old.definitions, comparison.new.definitions
    renamed = {
        finding.definition_old: finding.definition_new
        for finding in comparison.findings
        if finding.rule == "definition-renamed" and finding.definition_old in old and finding.definition_new in new
    }
    taken = set(renamed.values())
    became = {name: name for name in old if name in new and name not in taken} | renamed
    found = [Pair((definition, new.get(became.get(name, "")))) for name, definition in old.items()]
    taken |= set(became.values())
    found += [Pair((None, definition)) for name, definition in new.items() if name not in taken]
    return sorted(found, key=lambda pair: pair.newest.name)


def _parts(type: Type, links: Links) -> Iterator[tuple[str, Markup]]:
    """Return the lines of one definition, each with the key by which it finds its counterpart."""
    match type:
        case Object(fields, extra):
            for field in fields:
                name = field.wire if field.wire.isidentifier() else json.dumps(field.wire, ensure_ascii=False)
                optional = "" if field.required else "?"
                text = Markup("<b>{}</b>{}: {}").format(name, optional, _linked(field.type, links))
                yield f"field {field.wire}", text
            if extra is None:
                yield "extra", Markup("no other members")
            elif not isinstance(extra, AnyValue):
                yield "extra", Markup("any other member: {}").format(_linked(extra, links))
            elif not fields:
                yield "extra", Markup("object with any members")
        case Union(members):
            for member in members:
                yield f"member {describe(member)}", Markup("| {}").format(_linked(member, links))
        case Const(values):
            for value in values:
                yield f"value {value!r}", Markup("| {}").format(json.dumps(value, ensure_ascii=False))
        case _:
            yield "type", _linked(type, links)


def _linked(type: Type, links: Links) -> Markup:
    """Return `type` in words, with links for the definitions that it names."""
    linked = Markup()
    for index, part in enumerate(describe(_marked(type), formats=True).split(_MARK)):
        target = links.get(part) if index % 2 else None
        linked += escape(part) if target is None else Markup('<a href="#{}">{}</a>').format(target, part)
    return linked


def _marked(type: Type) -> Type:
    """Return `type` with the names of definitions marked."""
    if isinstance(type, Ref):
        return Ref(f"{_MARK}{type.name}{_MARK}")
    return map_parts(type, _marked)
