"""Objects of installed packages, found by URL scheme through entry points: transports, and further groups."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypedDict, TypeVar

from .logs import log

if TYPE_CHECKING:
    from .session.server import Server
    from .session.targets import Address, Auth


class HasSchemes(Protocol):
    """Object of an entry point that opens URLs."""

    @property
    def schemes(self) -> Sequence[str]:
        """The URL schemes, in lower case."""
        ...


T = TypeVar("T", bound=HasSchemes)


class RunOptions(TypedDict, total=False):
    """Options of `run`, which describes them."""

    auth: Any
    revisions: Sequence[str] | None
    allowed_hosts: Collection[str] | None
    allowed_origins: Collection[str] | None
    log_format: str | None


class TransportEntry(HasSchemes, Protocol):
    """Object of an entry point `mcp_bindgen.transports`.

    Its module imports the standard library and the kernel only, and its methods import the rest.
    """

    def open(self, url: str, headers: Mapping[str, str], auth: Auth | None) -> Address:
        """Return the address for a URL of one of the schemes, for `connect`.

        Raises:
            ImportError: A package is not installed; the message names it.
            ValueError: The URL, the headers or `auth` cannot be used.
        """
        ...

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of `run` that choose and configure this transport."""
        ...

    def serve(
        self, servers: Sequence[Server], chosen: argparse.Namespace, options: RunOptions
    ) -> Callable[[], object] | None:
        """Return a function that serves until the process is stopped; `None` if no option chose this transport.

        Args:
            servers: The servers, at most one for each revision.
            chosen: The parsed command line.
            options: The arguments of `run`.

        Raises:
            ValueError: The options cannot be used, or a package is not installed.
        """
        ...


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

    def find(self, scheme: str) -> T:
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


TRANSPORTS: EntryPoints[TransportEntry] = EntryPoints("mcp_bindgen.transports", "transport")
