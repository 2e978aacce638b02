"""Say what the servers of a host offer, and what their clients must be able to do to tell."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class NotRouted(LookupError):
    """A call that goes nowhere: its server or tool is not there, or several servers offer a tool of that name."""


@dataclass(frozen=True)
class Offer(Generic[T_co]):
    """Something that a server offers.

    Attributes:
        server: The server's name in the configuration.
        item: The `Tool`, `Prompt` or `Resource` of the client's revision.
    """

    server: str
    item: T_co


class Tools(Protocol[T_co]):
    """A client that can list tools."""

    def iter_tools(self) -> AsyncIterator[T_co]:
        """Return them, all pages."""
        ...


class Prompts(Protocol[T_co]):
    """A client that can list prompts."""

    def iter_prompts(self) -> AsyncIterator[T_co]:
        """Return them, all pages."""
        ...


class Resources(Protocol[T_co]):
    """A client that can list resources."""

    def iter_resources(self) -> AsyncIterator[T_co]:
        """Return them, all pages."""
        ...


class Calls(Protocol[T_co]):
    """A client that can call tools."""

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> T_co:
        """Call one."""
        ...
