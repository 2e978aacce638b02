"""The names that a piece of code can see."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from .values import Module, Package, Value, either


@dataclass(frozen=True)
class Binding:
    """What a name is.

    Attributes:
        value: Its value, if that is clear.
        origin: The module of the bindings that it was imported from under its own name.
    """

    value: Value | None
    origin: Package | Module | None = None


class Scope:
    """The names of a module, a class or a function.

    Args:
        parent: The scope around it.
        hidden: Whether scopes inside of it do not see its names, as with classes.
    """

    def __init__(self, parent: Scope | None = None, *, hidden: bool = False) -> None:
        self.parent, self.hidden = parent, hidden
        self.names: dict[str, Binding] = {}

    def bind(self, name: str, value: Value | None, origin: Package | Module | None = None) -> None:
        """Gives a name a value."""
        self.names[name] = Binding(value, origin)

    def lookup(self, name: str) -> Binding | None:
        """What a name is; `None` where nothing here binds it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names and (scope is self or not scope.hidden):
                return scope.names[name]
            scope = scope.parent
        return None

    @contextmanager
    def branches(self) -> Generator[Branches]:
        """Runs pieces of code of which one is taken; afterwards a name may be what it is after any of them."""
        found = Branches(self)
        yield found
        self.names = _merged(found.ends or [found.start])


class Branches:
    """Pieces of code of which one is taken.

    Attributes:
        start: The names before them.
        ends: The names after each of them that leads on.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope, self.start = scope, dict(scope.names)
        self.ends: list[dict[str, Binding]] = []

    @contextmanager
    def branch(self, *, leaves: bool = False) -> Generator[None]:
        """Runs one of them; `leaves` says that it does not lead to what follows."""
        self._scope.names = dict(self.start)
        yield
        if not leaves:
            self.ends.append(self._scope.names)

    def skipped(self) -> None:
        """None of them may be taken."""
        self.ends.append(self.start)


def _merged(ends: list[dict[str, Binding]]) -> dict[str, Binding]:
    found: dict[str, Binding] = {}
    for name in dict.fromkeys(name for end in ends for name in end):
        bindings = [end[name] for end in ends if name in end]
        origins = {binding.origin for binding in bindings}
        value = either(binding.value for binding in bindings)
        found[name] = Binding(value, origins.pop() if len(origins) == 1 else None)
    return found
