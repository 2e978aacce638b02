"""Marks of methods: which tool, prompt or resource of the contract a method is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter

F = TypeVar("F", bound=Callable[..., Any])

Kind = Literal["tool", "prompt", "resource", "template"]


@dataclass(frozen=True, eq=False)
class Offer:
    """What a method of a contract is.

    Attributes:
        kind: What it is.
        name: Its name on the wire; a resource has its URI, a template its URI template.
        input: The type of the arguments; `None` for a method without any.
        output: The type of the structured result of a tool; `None` for a tool without one.
    """

    kind: Kind
    name: str
    input: Any = None
    output: Any = None

    @cached_property
    def reader(self) -> TypeAdapter[Any]:
        """Reads arguments; built on first use."""
        return TypeAdapter(self.input)

    @cached_property
    def writer(self) -> TypeAdapter[Any]:
        """Writes structured results; built on first use."""
        return TypeAdapter(self.output)


def tool(name: str, input: Any = None, output: Any = None) -> Callable[[F], F]:
    """Marks the method of a tool.

    Args:
        name: Its name in the contract.
        input: The type of its arguments; a method without one takes the context alone.
        output: The type of its structured result, if its schema is in the contract.
    """
    return _mark(Offer("tool", name, input, output))


def prompt(name: str, arguments: Any = None) -> Callable[[F], F]:
    """Marks the method of a prompt; one without arguments takes the context alone."""
    return _mark(Offer("prompt", name, arguments))


def resource(uri: str) -> Callable[[F], F]:
    """Marks the method that reads a resource."""
    return _mark(Offer("resource", uri))


def template(uri_template: str, variables: Any = None) -> Callable[[F], F]:
    """Marks the method that reads the resources of a template; `variables` is the type of what is in their URIs."""
    return _mark(Offer("template", uri_template, variables))


def _mark(offer: Offer) -> Callable[[F], F]:
    def mark(method: F) -> F:
        method.__mcp_offer__ = offer  # type: ignore[attr-defined]
        return method

    return mark


def offers(contract: type) -> dict[str, Offer]:
    """Name of a method -> what it is: those of a class and its bases; who overrides a method need not mark it again."""
    found: dict[str, Offer] = {}
    for base in reversed(contract.__mro__):
        for name, value in vars(base).items():
            offer = getattr(value, "__mcp_offer__", None)
            if isinstance(offer, Offer):
                found[name] = offer
    return found
