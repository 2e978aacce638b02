"""Views of the entries of an app: prefixes, new names, and entries that are disabled for some callers."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from mcp_bindgen.extensions.apps import resource_uri

from .catalog import KINDS, Entry, Kind
from .handlers import BoundHandler
from .middleware import Layer, Owner


def prefixed(kind: Kind, name: str, prefix: str) -> str:
    """Return the name of an entry below a prefix: `books_find` for a tool, `note://books/1` for a resource."""
    if not prefix:
        return name
    if kind in ("tool", "prompt"):
        return f"{prefix}_{name}"
    scheme, _, rest = name.partition(":")
    return f"{scheme}://{prefix}/{rest[2:]}" if rest.startswith("//") else f"{scheme}:{prefix}/{rest}"


def mounted(handler: BoundHandler, owner: Owner, prefix: str) -> BoundHandler:
    """Return the handler of an entry that an app offers below a prefix; names in its entry change likewise."""
    kind = handler.spec.kind
    name = prefixed(kind, handler.spec.name, prefix)
    entry: Entry = {**handler.entry, KINDS[kind].key: name}
    shown_by = resource_uri(entry)
    if shown_by is not None:
        ui = {**entry["_meta"]["ui"], "resourceUri": prefixed("resource", shown_by, prefix)}
        entry["_meta"] = {**entry["_meta"], "ui": ui}
    return handler.viewed(name, entry, Layer(owner, name, prefix), *handler.layers)


def renamed(handler: BoundHandler, name: str) -> BoundHandler:
    """Return the handler of a tool under another name."""
    first, *rest = handler.layers
    return handler.viewed(name, {**handler.entry, "name": name}, first._replace(name=name), *rest)


class Rule(NamedTuple):
    """A rule that enables or disables entries.

    Attributes:
        is_enabled: True to enable them.
        names: Their names.
        tags: Tags, of which an entry has at least one.
        subject: The subject of a token for which the rule holds; `None` for all callers.
    """

    is_enabled: bool
    names: Collection[str]
    tags: Collection[str]
    subject: str | None

    def holds(self, name: str, tags: Collection[str], subject: str | None) -> bool:
        """Return True if the rule is about an entry and a caller."""
        is_meant = name in self.names or not set(tags).isdisjoint(self.tags)
        return is_meant and self.subject in (None, subject)
