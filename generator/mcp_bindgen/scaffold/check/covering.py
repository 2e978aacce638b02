"""Decide whether one annotation says at least what another one says; what cannot be known counts as yes."""

from __future__ import annotations

import collections.abc
import types
import typing
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar, Union

from typing_extensions import TypeAliasType

_UNIONS = (Union, types.UnionType)
_PROMOTED = {float: (int,), complex: (int, float)}
_AWAITED = (collections.abc.Awaitable, collections.abc.Coroutine)
_INVARIANT = (list, dict, set, collections.abc.MutableMapping, collections.abc.MutableSequence)


def covers(wide: Any, narrow: Any) -> bool:
    """Return whether every value of the annotation `narrow` is one of `wide`.

    The answer is no only where that is certain: it is meant for complaints, and a wrong complaint is worse than none.
    """
    wide, narrow = _plain(wide), _plain(narrow)
    if wide == narrow or wide in (Any, object) or narrow in (Any, typing.Never, typing.NoReturn):
        return True
    if isinstance(wide, TypeVar | str) or isinstance(narrow, TypeVar | str):
        return True
    if typing.get_origin(narrow) in _UNIONS:
        return all(covers(wide, member) for member in typing.get_args(narrow))
    if typing.get_origin(wide) in _UNIONS:
        return any(covers(member, narrow) for member in typing.get_args(wide))
    if typing.get_origin(narrow) is Literal:
        return _covers_values(wide, typing.get_args(narrow))
    return _covers_class(wide, narrow)


def awaited(annotation: Any) -> Any:
    """Return the annotation of what awaiting gives, or `annotation` where it cannot be awaited."""
    plain = _plain(annotation)
    arguments = typing.get_args(plain)
    if typing.get_origin(plain) in _AWAITED and arguments:
        return arguments[-1]
    return annotation


def spelled(annotation: Any) -> str:
    """Return `annotation` in a few words, as somebody would write it."""
    plain = _plain(annotation)
    if plain in (None, type(None)):
        return "None"
    if typing.get_origin(plain) in _UNIONS:
        return " | ".join(spelled(member) for member in typing.get_args(plain))
    if isinstance(plain, type) and not typing.get_args(plain):
        return plain.__name__
    return str(plain).replace("typing.", "").replace("collections.abc.", "")


def _plain(annotation: Any) -> Any:
    """Return `annotation` without aliases and notes."""
    while True:
        if isinstance(annotation, TypeAliasType):
            annotation = annotation.__value__
        elif typing.get_origin(annotation) is Annotated:
            annotation = typing.get_args(annotation)[0]
        elif annotation is None:
            return type(None)
        else:
            return annotation


def _covers_values(wide: Any, values: Sequence[Any]) -> bool:
    if typing.get_origin(wide) is Literal:
        known: list[tuple[type, Any]] = [(type(value), value) for value in typing.get_args(wide)]
        return all((type(value), value) in known for value in values)
    return all(covers(wide, type(value)) for value in values)


def _covers_class(wide: Any, narrow: Any) -> bool:
    if typing.get_origin(wide) is Literal:
        return False
    outer, inner = typing.get_origin(wide) or wide, typing.get_origin(narrow) or narrow
    if not isinstance(outer, type) or not isinstance(inner, type) or _is_protocol(outer):
        return True
    if not (_is_subclass(inner, outer) or inner in _PROMOTED.get(outer, ())):
        return False
    wanted, given = typing.get_args(wide), typing.get_args(narrow)
    if not wanted or len(wanted) != len(given):
        return inner is not str or not wanted or covers(wanted[0], str)
    return all(_covers_argument(outer, *pair) for pair in zip(wanted, given, strict=True))


def _covers_argument(outer: type, wanted: Any, given: Any) -> bool:
    if wanted is Ellipsis or given is Ellipsis:
        return True
    return covers(wanted, given) and (outer not in _INVARIANT or covers(given, wanted))


def _is_subclass(inner: type, outer: type) -> bool:
    try:
        return issubclass(inner, outer)
    except TypeError:
        return True


def _is_protocol(kind: type) -> bool:
    return bool(getattr(kind, "_is_protocol", False))
