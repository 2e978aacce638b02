"""Moves from core to extensions, and histories of extensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mcp_bindgen.ir import Protocol, build
from mcp_bindgen.spec import EffectiveSchema, ExtensionSchema, Pin, Schema, Store, extend
from mcp_bindgen.spec.keywords import method_of, walk

from .finding import Comparison, Finding, Plane
from .selectors import find

_GONE = ("request-method-removed", "notification-removed", "definition-removed")


def tell_moves(comparison: Comparison, store: Store) -> Comparison:
    """Return `comparison` with hints about removed definitions and methods that are part of an extension now.

    Args:
        comparison: The comparison; only the hints of its findings change.
        store: The `schema/` folder with the released extensions of the new revision.
    """
    revision = comparison.new.revision
    if revision not in store.pins or not any(one.rule in _GONE for one in comparison.findings):
        return comparison
    offers = [_offer(pin, store) for pin in store.extensions_for(revision)]
    return replace(comparison, findings=tuple(_told(finding, offers) for finding in comparison.findings))


def timelines(subject: str, store: Store) -> dict[str, list[Protocol]]:
    """Return id -> versions, oldest first, of the extensions with the method or definition that `subject` names."""
    found: dict[str, list[Protocol]] = {}
    for pin in store.extension_pins:
        core = store.effective(store.core(pin))
        found.setdefault(pin.id, []).append(versioned(core, store.extension_schema(pin, core)))
    return {id: versions for id, versions in found.items() if any(_brings(one, id, subject) for one in versions)}


def versioned(core: EffectiveSchema, extension: ExtensionSchema) -> Protocol:
    """Return a core revision with an extension, named after the version of the extension."""
    return replace(build(extend(core, extension)), revision=extension.label, digest=extension.digest)


def _brings(protocol: Protocol, origin: str, subject: str) -> bool:
    selector = find(protocol, subject)
    owners = {
        **{("method", method.name): method.origin for method in protocol.methods},
        **{("error", error.name): error.origin for error in protocol.errors},
        **{(kind, one.name): one.origin for one in protocol.definitions.values() for kind in ("definition", "member")},
    }
    return selector is not None and owners.get((selector.kind, selector.name)) == origin


@dataclass(frozen=True)
class _Offer:
    """Names of an extension.

    Attributes:
        id: Its id.
        module: The name of its package.
        definitions: Its definitions.
        messages: Definition and method of each message, with its senders: `client`, `server` or `both`.
    """

    id: str
    module: str
    definitions: frozenset[str]
    messages: tuple[tuple[str, str, str], ...]


def _offer(pin: Pin, store: Store) -> _Offer:
    definitions: Mapping[str, Schema] = store.structure(pin)["$defs"]
    roles: Mapping[str, str] = store.facts(pin)["roles"]
    messages = [
        (name, method, roles[name])
        for name, schema in definitions.items()
        if roles.get(name, "none") != "none" and (method := _method_of(schema)) is not None
    ]
    return _Offer(pin.id, store.module(pin), frozenset(definitions), tuple(messages))


def _method_of(schema: Schema) -> str | None:
    """Return the method that a message states, perhaps in a part of an `allOf`."""
    return next(filter(None, map(method_of, walk(schema))), None)


def _told(finding: Finding, offers: Sequence[_Offer]) -> Finding:
    if finding.rule not in _GONE:
        return finding
    gone = finding.subject.rpartition(" ")[2]
    messages = [(offer, *message) for offer in offers for message in offer.messages]
    same = [(offer, method, sender) for offer, _, method, sender in messages if method == gone]
    same += [(offer, method, sender) for offer, name, method, sender in messages if name == finding.definition_old]
    if finding.plane is Plane.WIRE:
        senders = {"both", *(message.sender for message in finding.reaches)}
        found = [(offer, method) for offer, method, sender in same if sender in senders]
    else:
        name = finding.definition_old or finding.subject
        found = [(offer, method) for offer, method, _ in same]
        found += [(offer, name) for offer in offers if name in offer.definitions]
    if not found:
        return finding
    offer, name = found[0]
    hint = f"It moved to the extension {offer.id}, where it is {name}: see mcp-bindgen show {offer.module} {name}."
    return replace(finding, hint=hint)
