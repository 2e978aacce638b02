"""Holding JSON values against the schemas of a contract, exactly, with a JSON Schema validator.

A schema without `$schema` is one of JSON Schema 2020-12, as the protocol says. `format` is an annotation. Nothing is
ever fetched: a reference that leaves the schema is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib.util import find_spec
from itertools import islice
from typing import Any

from pydantic_core import to_json

from .errors import BrokenPromise

MOST = 10
"""How many problems are told."""

_LONGEST = 200  # characters of a problem
_LONGEST_STEP = 60  # characters of a member's name in a path
_VALUE = "the value"
_CHOICES = ("anyOf", "oneOf")
_LARGE = 1 << 14  # bytes of JSON


class NotInstalled(ImportError):
    """A contract with tools is to be served, and there is no validator."""


def require_validator() -> None:
    """Raises `NotInstalled` when there is no validator; nothing is imported yet."""
    if find_spec("jsonschema_rs") is None:
        raise NotInstalled("serving the tools of a contract needs jsonschema-rs: pip install 'mcp-bindgen[contract]'")


class Check:
    """A schema that values are held against; compiled on first use.

    Args:
        schema: The schema, verbatim.
        place: Where it is in the contract, for messages.
    """

    def __init__(self, schema: Any, place: str) -> None:
        self._schema = schema
        self._place = place

    @cached_property
    def _validator(self) -> Any:
        require_validator()
        import jsonschema_rs

        try:
            return jsonschema_rs.validator_for(self._schema, validate_formats=False, mask=_VALUE, retriever=_refuse)
        except ValueError as error:
            reason = str(error).partition("\n")[0]
            raise BrokenPromise(f"{self._place} is not a schema that can be used: {_cut(reason)}") from None

    def problems(self, value: Any, root: str) -> list[dict[str, str]]:
        """What is wrong with a JSON value, and where; nothing if it fits. Values are not repeated.

        Args:
            value: The value.
            root: The path that leads to it.

        Raises:
            BrokenPromise: The schema is unusable.
        """
        if self._validator.is_valid(value):
            return []
        errors = list(islice(_causes(self._errors(value)), MOST + 1))
        told = [{"path": _path(root, error.instance_path), "problem": _cut(error.message)} for error in errors[:MOST]]
        return told + [{"path": root, "problem": "there is more"}] * (len(errors) > MOST)

    def _errors(self, value: Any) -> Iterable[Any]:
        """The errors of a value; one of them if there may be so many that to find them all takes seconds."""
        if len(to_json(value)) <= _LARGE:
            return self._validator.iter_errors(value)  # type: ignore[no-any-return]
        try:
            self._validator.validate(value)
        except ValueError as error:
            return [error]
        return []


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is outside of the schema, and nothing is fetched")


def _causes(errors: Iterable[Any]) -> Iterator[Any]:
    """The errors that tell most: those of the one alternative that was meant, where that is plain."""
    for error in errors:
        branches: list[list[Any]] = getattr(error.kind, "context", []) if error.kind.name in _CHOICES else []
        depth = len(error.instance_path)
        meant = [branch for branch in branches if branch and not any(_is_another(one, depth) for one in branch)]
        yield from _causes(meant[0]) if len(meant) == 1 else [error]


def _is_another(error: Any, depth: int) -> bool:
    """Whether an alternative is about another type, or about objects that say that they are of another kind."""
    below = len(error.instance_path) - depth
    return (error.kind.name == "type" and below == 0) or (error.kind.name == "const" and below <= 1)


def _path(root: str, steps: Iterable[str | int]) -> str:
    return ".".join([root, *(_cut(str(step), _LONGEST_STEP) for step in steps)])


def _cut(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else f"{text[:longest]}..."
