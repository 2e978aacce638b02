"""Merge inline objects of the same form, where `semantics.toml` has a name for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..model import Definition, Object, Ref, Type, renamed
from .build_state import BuildState


def merge_inline_objects(state: BuildState) -> BuildState:
    """Give the most frequent form of inline objects at a member, such as `_meta`, its stated name.

    Other forms keep the names of their places, and so do all where the name stands for something else.
    """
    names: dict[str, str] = {}
    merged: dict[str, Definition] = {}
    shared: Mapping[str, str] = state.semantics["shared"]
    for member, name in shared.items():
        places = _most_frequent(state, member)
        known = state.definitions.get(name)
        if len(places) > 1 and (known is None or known.type == state.definitions[places[0]].type):
            form = state.definitions[places[0]]
            same = [place for place in _below(state, member) if state.definitions[place].type == form.type]
            names |= dict.fromkeys((*places, *same), name)
            merged[name] = known or replace(form, name=name)
    kept = {name: definition for name, definition in state.definitions.items() if name not in names}
    definitions = {
        name: replace(definition, type=renamed(definition.type, names))
        for name, definition in {**kept, **merged}.items()
    }
    return replace(state, definitions=dict(sorted(definitions.items())))


def _most_frequent(state: BuildState, member: str) -> list[str]:
    """List the inline objects of core below `member` that have the form which most of them have."""
    forms: defaultdict[Type, list[str]] = defaultdict(list)
    for name in sorted(name for name in _below(state, member) if not state.definitions[name].origin):
        forms[state.definitions[name].type].append(name)
    return max(forms.values(), key=len, default=list[str]())


def _below(state: BuildState, member: str) -> Iterator[str]:
    for definition in state.definitions.values():
        field = definition.type.field(member) if isinstance(definition.type, Object) else None
        if field is not None and isinstance(field.type, Ref) and state.definitions[field.type.name].inline:
            yield field.type.name
