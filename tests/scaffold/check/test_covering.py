"""Whether one annotation says at least what another says: certain cases only, and never a wrong complaint."""

from __future__ import annotations

import collections.abc
import functools
from collections.abc import Awaitable, Coroutine, Iterable, Mapping, Sequence
from types import GenericAlias
from typing import Annotated, Any, Literal, Optional, Protocol, TypeVar, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypeAliasType

from mcp_bindgen.runtime.model import scalars as values
from mcp_bindgen.scaffold.check.covering import awaited, covers, spelled

T = TypeVar("T")
Text = TypeAliasType("Text", str)


class Animal:
    pass


class Dog(Animal):
    pass


class Speaks(Protocol):
    def speak(self) -> str: ...


YES = [
    (str, str),
    (object, Dog),
    (Any, Dog),
    (Dog, Any),
    (Animal, Dog),
    (Animal | None, Dog),
    (Optional[Dog], None),  # noqa: UP045 - both spellings are written
    (Union[int, str], str | int),  # noqa: UP007
    (float, int),
    (str, Text),
    (Text, str),
    (Annotated[str, "note"], str),
    (str, Literal["a", "b"]),
    (Literal["a", "b"], Literal["a"]),
    (Sequence[Animal], list[Dog]),
    (Sequence[Animal], tuple[Dog, ...]),
    (Mapping[str, Animal], dict[str, Dog]),
    (Iterable[str], str),
    (list, list[int]),
    (list[int], list),
    (Speaks, Dog),
    (T, Dog),
    ("Forward", Dog),
    (values.Json, dict[str, str]),
    (str | Sequence[Animal] | Dog, list[Animal]),
]
NO = [
    (str, int),
    (Dog, Animal),
    (Dog, Animal | Dog),
    (str, None),
    (None, str),
    (int, float),
    (Literal["a"], str),
    (Literal["a"], Literal["a", "b"]),
    (Literal[1], Literal[True]),
    (int, Literal["a"]),
    (Sequence[Dog], list[Animal]),
    (list[Animal], list[Dog]),
    (dict[str, float], dict[str, int]),
    (Sequence[Animal], str),
    (list[int], Sequence[int]),
    (str | Sequence[Animal] | Dog, list[int]),
]


@pytest.mark.parametrize(("wide", "narrow"), YES)
def test_what_is_covered(wide: Any, narrow: Any) -> None:
    assert covers(wide, narrow)


@pytest.mark.parametrize(("wide", "narrow"), NO)
def test_what_is_not_covered(wide: Any, narrow: Any) -> None:
    assert not covers(wide, narrow)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Awaitable[str], str),
        (Coroutine[Any, Any, int | None], int | None),
        (collections.abc.Awaitable[str], str),
        (str, str),
        (Any, Any),
    ],
)
def test_what_comes_of_awaiting(annotation: Any, value: Any) -> None:
    assert awaited(annotation) == value


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (str, "str"),
        (None, "None"),
        (Dog | None, "Dog | None"),
        (Sequence[int], "Sequence[int]"),
        (Literal["a"], "Literal['a']"),
        (Any, "Any"),
    ],
)
def test_annotations_are_spelled_as_people_write_them(annotation: Any, words: str) -> None:
    assert spelled(annotation) == words


def union(members: tuple[Any, ...]) -> Any:
    return functools.reduce(lambda one, other: Union[one, other], members)  # noqa: UP007 - `None | None` is no type


SCALARS: list[Any] = [str, int, bool, float, None, Literal["a", "b"], Literal["a"], Literal[2], Literal[2, 3]]
ANNOTATIONS: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(
        inner.map(lambda item: GenericAlias(list, item)),
        inner.map(lambda item: GenericAlias(dict, (str, item))),
        st.tuples(inner, inner).map(union),
    ),
    max_leaves=4,
)
SAMPLES: list[Any] = [None, "a", "b", "x", 1, 2, 3, True, 1.5, [], [1], ["a"], [None, "x"], {}, {"k": 1}, {"k": "a"}]
SAMPLES += [[sample] for sample in SAMPLES] + [{"k": sample} for sample in SAMPLES]


def accepts(annotation: Any, value: Any) -> bool:
    try:
        TypeAdapter(annotation).validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


@given(wide=ANNOTATIONS, narrow=ANNOTATIONS)
def test_what_is_covered_is_accepted(wide: Any, narrow: Any) -> None:
    """pydantic is the judge."""
    if covers(wide, narrow):
        assert [value for value in SAMPLES if accepts(narrow, value) and not accepts(wide, value)] == []


@given(annotation=ANNOTATIONS, other=ANNOTATIONS)
def test_everything_covers_itself_and_is_covered_by_more(annotation: Any, other: Any) -> None:
    assert covers(annotation, annotation)
    assert covers(union((annotation, other)), annotation)
