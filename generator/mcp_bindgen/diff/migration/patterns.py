"""Reads the patterns of `match`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .values import Class, Data, Value, either, item

if TYPE_CHECKING:
    from .expressions import Expressions


def bind_pattern(pattern: ast.pattern, subject: Value | None, reader: Expressions) -> Value | None:
    """Notes what a pattern uses and binds its names; gives what the subject is where it fits."""
    match pattern:
        case ast.MatchClass():
            return _class(pattern, reader)
        case ast.MatchAs(pattern=inner, name=name):
            found = bind_pattern(inner, subject, reader) if inner is not None else subject
            if name is not None:
                reader.scope.bind(name, found)
            return found
        case ast.MatchOr(patterns=patterns):
            return either([bind_pattern(one, subject, reader) for one in patterns])
        case ast.MatchSequence(patterns=patterns):
            held = item(subject, reader.protocol)
            for one in patterns:
                bind_pattern(one, None if isinstance(one, ast.MatchStar) else held, reader)
        case ast.MatchMapping(keys=keys, patterns=patterns):
            for key in keys:
                reader.value(key)
            for one in patterns:
                bind_pattern(one, None, reader)
        case ast.MatchValue(value=value):
            reader.value(value)
        case ast.MatchStar(name=name) if name is not None:
            reader.scope.bind(name, subject)
        case _:
            pass
    return subject


def _class(pattern: ast.MatchClass, reader: Expressions) -> Value | None:
    kind = reader.value(pattern.cls)
    found = reader.bindings.instance(kind) if isinstance(kind, Class) else None
    definition = kind.definition if isinstance(kind, Class) else None
    fields = reader.bindings.surface.fields(definition) if definition is not None else {}
    for one in pattern.patterns:
        bind_pattern(one, None, reader)
    for name, one in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
        field = fields.get(name)
        if definition is not None and field is not None:
            reader.notes.read(reader.notes.start(one), definition, name)
        bind_pattern(one, Data(field.type) if field is not None else None, reader)
    return found
