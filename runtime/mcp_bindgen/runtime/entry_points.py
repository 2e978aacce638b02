"""Objects of installed packages, found through entry points: transports, conversion between revisions, and others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Generic, Protocol, TypeVar

from .logs import log


class HasSchemes(Protocol):
    """Object of an entry point that opens URLs."""

    @property
    def schemes(self) -> Sequence[str]:
        """The URL schemes, in lower case."""
        ...


T = TypeVar("T")
S = TypeVar("S", bound=HasSchemes)


class EntryPoints(Generic[T]):
    """Entry points of one group. Installed packages are scanned when `objects` is first read.

    Args:
        group: The name of the group.
        noun: Describes an object of the group, for errors.
    """

    def __init__(self, group: str, noun: str) -> None:
        self._group = group
        self._noun = noun

    @cached_property
    def objects(self) -> Sequence[tuple[str, T]]:
        """The objects, each with the name of its distribution; one that fails to load is logged and left out."""
        from importlib.metadata import entry_points

        found: list[tuple[str, T]] = []
        for point in entry_points(group=self._group):
            distribution = point.dist.name if point.dist is not None else point.value
            try:
                found.append((distribution, point.load()))
            except Exception as error:  # any error of a foreign module
                log.warning("the %s %s of %s is left out: %s", self._noun, point.name, distribution, error)
        return found

    def find(self: EntryPoints[S], scheme: str) -> S:
        """Return the object for a URL scheme.

        Raises:
            ValueError: There is none, or two distributions have one.
        """
        found = [(distribution, value) for distribution, value in self.objects if scheme in value.schemes]
        if len(found) > 1:
            names = " and ".join(sorted(distribution for distribution, _ in found))
            raise ValueError(f"{names} both have a {self._noun} for {scheme}:; uninstall one of them")
        if not found:
            known = sorted({f"{one}:" for _, value in self.objects for one in value.schemes})
            raise ValueError(f"no {self._noun} for {scheme}:; installed: {', '.join(known) or 'none'}")
        return found[0][1]

    def only(self) -> T | None:
        """Return the only object of the group, or None; raise `ImportError` if several distributions have one."""
        if len(self.objects) > 1:
            names = ", ".join(sorted(distribution for distribution, _ in self.objects))
            raise ImportError(f"several distributions provide {self._group}: {names}; uninstall all but one")
        return next((value for _, value in self.objects), None)
