"""Moves from core to extensions, and histories of extensions."""

from __future__ import annotations

from dataclasses import replace

from mcp_bindgen.protocol import Protocol, build
from mcp_bindgen.spec import Store, extend

from .finding import Comparison, Finding, Plane
from .selectors import find

_GONE = ("request-method-removed", "notification-removed", "definition-removed")


def tell_moves(comparison: Comparison, store: Store) -> Comparison:
    """Return `comparison` with hints about removed definitions and methods that are part of an extension now.

    Args:
        comparison: The comparison; only the hints of its findings change.
        store: The `schema/` folder with the released extensions of the new revision.
    """
    if comparison.new.revision not in store.pins or not any(one.rule in _GONE for one in comparison.findings):
        return comparison
    core = store.effective(comparison.new.revision)
    offered = store.extensions_of(core)
    if not offered:
        return comparison
    whole = build(extend(core, *offered))
    return replace(comparison, findings=tuple(_told(finding, whole) for finding in comparison.findings))


def timelines(words: str, store: Store) -> dict[str, list[Protocol]]:
    """Return id -> versions, oldest first, of the extensions with the method or definition that `words` name."""
    found: dict[str, list[Protocol]] = {}
    for pin in store.extension_pins:
        core = store.effective(store.core(pin))
        extension = store.extension_schema(pin, core)
        protocol = replace(build(extend(core, extension)), revision=extension.label, digest=extension.digest)
        found.setdefault(pin.id, []).append(protocol)
    return {id: versions for id, versions in found.items() if any(_brings(one, id, words) for one in versions)}


def _brings(protocol: Protocol, origin: str, words: str) -> bool:
    selector = find(protocol, words)
    owners = {
        **{("method", method.name): method.origin for method in protocol.methods},
        **{("error", error.name): error.origin for error in protocol.errors},
        **{(kind, one.name): one.origin for one in protocol.definitions.values() for kind in ("definition", "member")},
    }
    return selector is not None and owners.get((selector.kind, selector.name)) == origin


def _told(finding: Finding, whole: Protocol) -> Finding:
    if finding.rule not in _GONE:
        return finding
    methods = {finding.subject.rpartition(" ")[2]}
    same = [method for method in whole.methods if method.origin and method.name in methods]
    same += [method for method in whole.methods if method.origin and method.definition == finding.definition_old]
    if finding.plane is Plane.WIRE:
        same = [method for method in same if {message.sender for message in finding.reaches} & {*method.senders}]
        if not same:
            return finding
    name = same[0].name if same else finding.definition_old or finding.subject
    origin = same[0].origin if same else whole.definitions[name].origin if name in whole.definitions else ""
    if not origin:
        return finding
    module = next(one.name for one in whole.extensions if one.id == origin)
    hint = f"It moved to the extension {origin}, where it is {name}: see mcp-bindgen show {module} {name}."
    return replace(finding, hint=hint)
