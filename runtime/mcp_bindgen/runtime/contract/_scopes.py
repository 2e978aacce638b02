"""The scopes that a contract states beside its entries: what the token of a request needs (MCP, "Authorization")."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ._features import Feature
from .catalog import LISTS, SCOPES
from .handlers import BoundContract


class Scoped(Feature):
    """Tells the endpoint which scopes calls of tools, prompts and resources need."""

    @classmethod
    def is_in(cls, contract: BoundContract) -> bool:
        """Return whether a contract states scopes anywhere."""
        document = contract.catalog.document
        return any(entry.get(SCOPES) for member in LISTS for entry in document.get(member, ()))

    def required_scopes(self, method: str, name: str | None) -> Collection[str]:
        """Return what the contract states for the entry that is called, or for all that a URI may belong to.

        Completions tell what an entry is called with, so they need the same as the entry.
        """
        catalog = self.contract.catalog
        entries: list[Any] = []
        if method == "tools/call":
            entries = [catalog.tools.get(name or "")]
        elif method == "prompts/get":
            entries = [catalog.prompts.get(name or "")]
        elif method in ("resources/read", "resources/subscribe", "completion/complete") and name is not None:
            matching = [
                handler.entry
                for template, handler in self.contract.templates
                if template.match(name) is not None or handler.entry["uriTemplate"] == name
            ]
            entries = [catalog.resources.get(name), *matching]
            if method == "completion/complete":
                entries.append(catalog.prompts.get(name))
        return {scope for entry in entries if entry is not None for scope in entry.get(SCOPES, ())}
