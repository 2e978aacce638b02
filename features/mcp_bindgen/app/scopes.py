"""The scopes that a contract states beside its entries: what the token of a request needs (MCP, "Authorization")."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mcp_bindgen.auth.uri_rules import readings, rule_keys

from .catalog import LISTS, SCOPES, Entry, Kind
from .features import Feature
from .handlers import BoundContract


class Scoped(Feature):
    """Tells the endpoint which scopes calls of tools, prompts and resources need."""

    @classmethod
    def is_in(cls, contract: BoundContract) -> bool:
        """Return whether a contract states scopes anywhere."""
        document = contract.catalog.document
        return any(entry.get(SCOPES) for member in LISTS for entry in document.get(member, ()))

    def required_scopes(self, method: str, name: str | None) -> Collection[str]:
        """Return the scopes of the entry that is called, and of all entries that a URI may belong to.

        Completions tell what an entry is called with, so they need the same as the entry.
        """
        if name is None:
            return ()
        contract = self.contract
        entries: list[Entry] = []
        if kind := _NAMED.get(method):
            entries += [handler.entry for handler in (contract.handlers[kind].get(name),) if handler is not None]
        if method in _ADDRESSED and contract.resource_rules:
            entries += [entry for key in rule_keys(name) for entry in contract.resource_rules.get(key, ())]
            for template, handler in contract.templates:
                if SCOPES in handler.entry:
                    forms = readings(name, template.text)
                    entries += [handler.entry] * any(template.match(form) is not None for form in forms)
        return {scope for entry in entries for scope in entry.get(SCOPES, ())}


_NAMED: Mapping[str, Kind] = {"tools/call": "tool", "prompts/get": "prompt", "completion/complete": "prompt"}
"""Method -> the kind of the entries that it names."""

_ADDRESSED = frozenset({"resources/read", "resources/subscribe", "completion/complete"})
"""The methods that name the URI of a resource, or a URI template."""
