"""Find the features that a project may offer: the capabilities of a side, with their methods, and the extensions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mcp_bindgen.emit.python.calls import receives
from mcp_bindgen.emit.python.lowered import PythonProtocol
from mcp_bindgen.ir.model import OTHER_SIDE, Method, Sender
from mcp_bindgen.spec import Pin, Store
from mcp_bindgen.spec.errors import BadInput, suggestion


@dataclass(frozen=True)
class Feature:
    """A feature that one side may offer to the other.

    Attributes:
        name: Its capability, e.g. `tools`; if the revision has none, the first word of its methods.
        methods: The requests that it answers, lists first; empty for a feature that only sends notifications.
    """

    name: str
    methods: tuple[Method, ...]


def features(protocol: PythonProtocol, side: Sender) -> dict[str, Feature]:
    """Return name -> feature, for all features that `side` may offer, in alphabetical order."""
    found: dict[str, list[Method]] = {}
    flags = {capability.name for capability in protocol.capabilities if capability.flag}
    answered = {name for _, name in protocol.facts.utilities}  # by the runtime, as are the messages of the lifecycle
    for method in protocol.methods:
        if method.kind == "request" and receives(method, side) and not (method.lifecycle or method.name in answered):
            name = _feature(side, method.capability(OTHER_SIDE[side])) or method.name.partition("/")[0]
            found.setdefault(name, []).append(method)
        elif method.kind == "notification" and side in method.senders:
            path = method.capability(side)
            feature = _feature(side, path) if path not in flags else None
            if feature is not None:
                found.setdefault(feature, [])
    return {
        name: Feature(name, tuple(sorted(found[name], key=lambda method: _order(protocol, method))))
        for name in sorted(found)
    }


def choose(
    protocols: Iterable[PythonProtocol], side: Sender, wanted: tuple[str, ...]
) -> dict[str, tuple[tuple[Feature, ...], PythonProtocol]]:
    """Return the features in each revision, and the revision; a revision that lacks a feature goes without it.

    Args:
        protocols: The revisions.
        side: The side that offers them.
        wanted: The names of features; singular and plural are the same.

    Raises:
        BadInput: None of the revisions has one of them.
    """
    all_ = {protocol.revision: (features(protocol, side), protocol) for protocol in protocols}
    known = sorted({name for offered, _ in all_.values() for name in offered})
    missing = [name for name in wanted if not any(_same(name, one) for one in known)]
    for name in missing:
        revisions = ", ".join(all_)
        raise BadInput(f"a {side} of MCP {revisions} has no capability {name!r}", fix=suggestion(name, known))
    return {revision: (tuple(_chosen(offered, wanted)), protocol) for revision, (offered, protocol) in all_.items()}


def _chosen(offered: Mapping[str, Feature], wanted: tuple[str, ...]) -> list[Feature]:
    """Return the features that are offered and wanted, once each, in the wanted order."""
    names = (name for wish in wanted for name in offered if _same(wish, name))
    return [offered[name] for name in dict.fromkeys(names)]


def _feature(side: Sender, capability: str | None) -> str | None:
    """Return the top level of a dotted capability, if it is one of `side`."""
    owner, _, path = (capability or "").partition(".")
    return path.partition(".")[0] if owner == side else None


def _same(one: str, other: str) -> bool:
    """Return whether two names differ in nothing but case and number."""
    return one.lower().removesuffix("s") == other.lower().removesuffix("s")


def _order(protocol: PythonProtocol, method: Method) -> tuple[bool, str]:
    return not protocol.stub(method).startswith("list_"), method.name


# --- extensions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wanted:
    """The features and extensions of a project.

    Attributes:
        features: The capabilities; `None` for the default.
        extensions: The modules of the extensions.
        revisions: The revisions that it is written in; by default the newest that has the extensions.
    """

    features: tuple[str, ...] | None
    extensions: tuple[str, ...]
    revisions: tuple[str, ...]


def find_wanted(store: Store, names: tuple[str, ...] | None, revisions: Sequence[str]) -> Wanted:
    """Tell extensions from capabilities: a name that is both is the extension's where a revision has it.

    Args:
        store: The `schema/` folder.
        names: The features that were asked for, if any.
        revisions: The revisions that were named.

    Raises:
        BadInput: No revision has all of the extensions.
    """
    pins = {name: store.extension(name) for name in names or () if store.is_extension(name)}
    chosen = {name: pin for name, pin in pins.items() if not revisions or _has(store, pin, revisions)}
    if not chosen:
        return Wanted(names, (), tuple(revisions))
    cores = [name for name in store.pins if all(name in store.cores(pin) for pin in chosen.values())]
    if not cores:
        raise BadInput(f"no revision has all of {', '.join(chosen)}", fix="leave one of them out")
    left = tuple(name for name in names or () if name not in chosen)
    modules = tuple(dict.fromkeys(map(store.module, chosen.values())))
    return Wanted(left or None, modules, tuple(revisions) or (cores[-1],))


def offered_extensions(store: Store, revisions: Sequence[str]) -> list[str]:
    """Return the modules of the extensions that any of some revisions has."""
    return sorted({store.module(pin) for pin in store.extension_pins if _has(store, pin, revisions)})


def _has(store: Store, pin: Pin, revisions: Sequence[str]) -> bool:
    return not {store.pin(name).name for name in revisions}.isdisjoint(store.cores(pin))
