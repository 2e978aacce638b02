"""Extensions of the protocol as the kernel uses them (MCP 2026-07-28, "Extensions Overview").

Generated packages of extensions import another package, which implements these protocols.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from ..model.base import Model
from .methods import Method, RequestMethod, Role
from .routing import Route


class ExtensionResult(Model):
    """The base of results by which extensions answer methods of core; `resultType` tells them apart."""


class Extension(Protocol):
    """The facts of one extension of one core revision."""

    @property
    def id(self) -> str:
        """Its identifier, e.g. `com.example/jobs`."""
        ...

    @property
    def methods(self) -> Mapping[str, Method]:
        """Method name -> descriptor, of the methods that it adds."""
        ...

    def is_in(self, capabilities: Mapping[str, Any]) -> bool:
        """Return True if a side with these capabilities, in wire form, declares it."""
        ...

    def answering(self, method: str) -> Sequence[type[Any]]:
        """Return the types by which it may answer a method of core."""
        ...

    def members(self, definition: str) -> Mapping[str, str]:
        """Return the members that it adds to a definition of core: Python name -> wire name."""
        ...

    def negotiated(self, dispatcher: Any, declared: Mapping[Role, Mapping[str, Any]]) -> Any:
        """Return the typed settings of the peer; None if a side does not declare it or the revision is another one.

        Args:
            dispatcher: The `Dispatcher` of this side.
            declared: Side -> its capabilities, in wire form.

        Raises:
            ProtocolError: The settings are not valid.
        """

    def declared(self, role: Role, settings: object, handled: Collection[str] = ()) -> Any:
        """Return the settings of one of our sides in wire form; raises `ProtocolError` for invalid settings."""


class Addition(Protocol):
    """The routes that an extension adds to one side; the generated class of that side has them as `adds`."""

    @property
    def extension(self) -> Extension:
        """The extension."""
        ...

    def joined(self, kind: type, core: Mapping[str, Method], routes: Iterable[Route]) -> Sequence[Route]:
        """Return the routes of a class with the additions of all its extensions, given its routes in core.

        Raises:
            TypeError: The extensions of the class do not go together.
        """
        ...


def added_to(kind: type) -> tuple[Addition, ...]:
    """Return the additions of the extensions among the bases of a class, in the order of the bases."""
    return tuple(one.adds for one in definers(kind, "adds"))


def definers(kind: type, *names: str) -> list[Any]:
    """Return the class and those of its bases that define all these attributes themselves."""
    return [one for one in kind.__mro__ if vars(one).keys() >= set(names)]


def with_answers(method: RequestMethod[Any, Any], extensions: Iterable[Extension]) -> RequestMethod[Any, Any]:
    """Return a method of core with the types by which extensions may answer it; the same if there are none."""
    more = [kind for one in extensions for kind in one.answering(method.name)]
    return replace(method, alternatives=(*method.alternatives, *more)) if more else method
