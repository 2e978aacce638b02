"""Validation of JSON values against the schemas of a contract, exactly, with a JSON Schema validator.

A schema without `$schema` is one of JSON Schema 2020-12, as the protocol says. `format` is an annotation. Nothing is
ever fetched: a reference that leaves the schema is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any

from .complexity import MOST_STEPS, Complexity, is_larger
from .errors import InvalidResult, require

MOST = 10
"""How many problems are reported."""

_LONGEST = 200  # characters of a problem
_LONGEST_STEP = 60  # characters of a member's name in a path
_MOST_FOLD = 30  # steps for a value, as a multiple of those for a schema: counting them takes up to 1 us for each
_MOST_PARTS = 3000  # the same where they are not counted; the validator takes about 10 ns for each
_MOST_BACKTRACKS = 10_000  # of a pattern on a string; a million, the library's limit, take 24 ms
_MOST_EXPLAINED = 10_000  # steps of validation: an error costs up to 10 us at each of them


class Validator:
    """A schema that is compiled on first use.

    Args:
        schema: The schema, verbatim.
        place: Where it is in the contract, for messages.
        most_steps: How many steps of validation a value may take at most (see `Complexity`).

    Raises:
        ImportError: The validator is not installed.
    """

    def __init__(self, schema: Any, place: str, *, most_steps: int = MOST_STEPS) -> None:
        require("jsonschema_rs", "serving the tools of a contract")
        self._schema = schema
        self._place = place
        self._most_steps = most_steps

    @cached_property
    def _complexity(self) -> Complexity:
        return Complexity(self._schema)

    @cached_property
    def _steps(self) -> int:
        return self._complexity.steps(self._most_steps)

    @cached_property
    def _compiled(self) -> Any:
        import jsonschema_rs

        if self._steps > self._most_steps:
            raise InvalidResult(f"{self._place} is too complex: a value can take more than {self._most_steps} steps")
        try:
            return jsonschema_rs.validator_for(
                self._schema,
                validate_formats=False,
                mask="the value",
                retriever=_refuse,
                pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_MOST_BACKTRACKS),
            )
        except ValueError as error:
            reason = str(error).partition("\n")[0]
            raise InvalidResult(f"{self._place} is not a schema that can be used: {_cut(reason)}") from None

    def problems(self, value: Any, root: str) -> list[dict[str, str]]:
        """Return what is wrong with a JSON value, and where; nothing if it fits. Values are not repeated.

        Args:
            value: The value.
            root: The path that leads to it.

        Raises:
            InvalidResult: The schema is unusable.
        """
        compiled = self._compiled
        if self._takes_long(value):
            return [{"path": root, "problem": "is too large for the schema: validation would take too many steps"}]
        if compiled.is_valid(value):
            return []
        if self._complexity.exceeds(min(_MOST_EXPLAINED, self._most_steps), value):
            return [{"path": root, "problem": "does not fit the schema; it is too large to say where"}]
        errors = list(islice(_causes(compiled.iter_errors(value)), MOST + 1))
        found = [{"path": _path(root, error.instance_path), "problem": _cut(error.message)} for error in errors[:MOST]]
        return found + [{"path": root, "problem": "there is more"}] * (len(errors) > MOST)

    def _takes_long(self, value: Any) -> bool:
        """Tell whether a value is too large: a schema may be applied to each of its parts as often as it has steps."""
        most = self._most_steps
        return is_larger(value, _MOST_PARTS * most / self._steps) and self._complexity.exceeds(_MOST_FOLD * most, value)


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is outside of the schema, and nothing is fetched")


def _causes(errors: Iterable[Any]) -> Iterator[Any]:
    """Yield the most specific errors: those of the one alternative that was meant, where that is plain."""
    for error in errors:
        branches: list[list[Any]] = getattr(error.kind, "context", []) if error.kind.name in ("anyOf", "oneOf") else []
        depth = len(error.instance_path)
        meant = [branch for branch in branches if branch and not any(_is_another(one, depth) for one in branch)]
        yield from _causes(meant[0]) if len(meant) == 1 else [error]


def _is_another(error: Any, depth: int) -> bool:
    """Return whether an alternative is for another type, or for objects with another constant."""
    below = len(error.instance_path) - depth
    return (error.kind.name == "type" and below == 0) or (error.kind.name == "const" and below <= 1)


def _path(root: str, steps: Iterable[str | int]) -> str:
    return ".".join([root, *(_cut(str(step), _LONGEST_STEP) for step in steps)])


def _cut(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else f"{text[:longest]}..."
