"""Problems of JSON texts in words that are safe to send: no values, no addresses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json

from .json_types import is_array, is_object


def problems(error: ValidationError, root: str, data: bytes | str) -> list[dict[str, str]]:
    """List the problems of a JSON text with their paths."""
    return [{"path": ".".join([root, *steps]), "problem": problem} for steps, problem in located(error, data)]


def located(error: ValidationError, data: bytes | str) -> Iterator[tuple[list[str], str]]:
    """Yield the steps that lead to each problem of a JSON text, and the problem.

    Steps lead through the document, so the names that pydantic gives to the members of a union are left out.
    """
    try:
        document = from_json(data)
    except ValueError:
        document = None
    for problem in error.errors(include_url=False, include_input=False):
        yield list(_steps(problem, document)), _said(problem)


def _said(problem: ErrorDetails) -> str:
    if problem["type"] == "union_tag_invalid":  # pydantic's own words repeat the value
        return "Input should have one of these as {discriminator}: {expected_tags}".format(**problem.get("ctx", {}))
    return problem["msg"]


def _steps(problem: ErrorDetails, node: Any) -> Iterator[str]:
    for position, step in enumerate(problem["loc"]):
        if _leads_on(node, step):
            node = node[step]
        elif problem["type"] != "missing" or position < len(problem["loc"]) - 1:
            continue
        yield str(step)


def _leads_on(node: object, step: int | str) -> bool:
    return is_object(node) and step in node if isinstance(step, str) else is_array(node) and step < len(node)
