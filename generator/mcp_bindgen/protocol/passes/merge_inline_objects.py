"""Merge inline objects of the same form, where `semantics.toml` has a name for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..model import Definition, Object, Ref, Type, renamed
from .draft import Draft


def merge_inline_objects(draft: Draft) -> Draft:
    """Give the most frequent form of inline objects at a member, such as `_meta`, its stated name.

    Other forms keep the names of their places, and so do all where the name stands for something else.
    """
    names: dict[str, str] = {}
    merged: dict[str, Definition] = {}
    shared: Mapping[str, str] = draft.semantics["shared"]
    for member, name in shared.items():
        places = _most_frequent(draft, member)
        known = draft.definitions.get(name)
        if len(places) > 1 and (known is None or known.type == draft.definitions[places[0]].type):
            form = draft.definitions[places[0]]
            same = [place for place in _below(draft, member) if draft.definitions[place].type == form.type]
            names |= dict.fromkeys((*places, *same), name)
            merged[name] = known or replace(form, name=name)
    kept = {name: definition for name, definition in draft.definitions.items() if name not in names}
    definitions = {
        name: replace(definition, type=renamed(definition.type, names))
        for name, definition in {**kept, **merged}.items()
    }
    return replace(draft, definitions=dict(sorted(definitions.items())))


def _most_frequent(draft: Draft, member: str) -> list[str]:
    """List the inline objects of core below `member` that have the form which most of them have."""
    forms: defaultdict[Type, list[str]] = defaultdict(list)
    for name in sorted(name for name in _below(draft, member) if not draft.definitions[name].origin):
        forms[draft.definitions[name].type].append(name)
    return max(forms.values(), key=len, default=list[str]())


def _below(draft: Draft, member: str) -> Iterator[str]:
    for definition in draft.definitions.values():
        field = definition.type.field(member) if isinstance(definition.type, Object) else None
        if field is not None and isinstance(field.type, Ref) and draft.definitions[field.type.name].hoisted:
            yield field.type.name
