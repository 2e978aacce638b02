"""List the capabilities that each side may declare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..model import Capability, Object, Ref, Scalar, Sender, Type
from .draft import Draft

_OWNERS: tuple[tuple[Sender, str], ...] = (("client", "ClientCapabilities"), ("server", "ServerCapabilities"))


def collect_capabilities(draft: Draft) -> Draft:
    """Fill in the capabilities: each member of `ClientCapabilities` and `ServerCapabilities`, and theirs."""
    found = tuple(
        Capability(owner, path, flag)
        for owner, name in _OWNERS
        if name in draft.definitions
        for path, flag in _paths(Ref(name), draft, "", frozenset())
    )
    return replace(draft, capabilities=found)


def _paths(type: Type, draft: Draft, prefix: str, above: frozenset[str]) -> Iterator[tuple[str, bool]]:
    """Yield the members of `type` and their members; a type that contains one `above` it is not followed further."""
    while isinstance(type, Ref):
        if type.name in above:
            return
        above |= {type.name}
        type = draft.definitions[type.name].type
    if isinstance(type, Object):
        for field in type.fields:
            yield prefix + field.wire, field.type == Scalar("boolean")
            yield from _paths(field.type, draft, f"{prefix}{field.wire}.", above)
