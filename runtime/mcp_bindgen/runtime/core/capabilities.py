"""What either side declares, and what may be sent because of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .json_types import is_object
from .methods import Method
from .revision import LOG, PING, Role, Vocabulary

_OTHER: dict[Role, Role] = {"client": "server", "server": "client"}


def declare(role: Role, vocabulary: Vocabulary, offered: Iterable[str]) -> dict[str, Any]:
    """The capabilities that follow from the methods that are handled.

    A method that the other side sends needs a capability of ours. Announcing a change of something that is offered is
    always possible, unless the other side has to ask for it with a request. Every server can log, because the runtime
    sees to it.
    """
    other = _OTHER[role]
    found: dict[str, Any] = {}
    log = vocabulary.methods.get(LOG)
    if log is not None and role in log.capabilities:
        _put(found, log.capabilities[role], vocabulary)
    for name in sorted(set(offered)):
        method = vocabulary.methods.get(name)
        path = method.capabilities.get(other) if method is not None else None
        if path is not None and path.startswith(f"{role}."):
            _put(found, path, vocabulary)
    requested = {method.capabilities.get(other) for method in vocabulary.methods.values() if method.kind == "request"}
    for method in vocabulary.methods.values():
        path = method.capabilities.get(role, "")
        if method.kind == "notification" and path in vocabulary.flags and path not in requested:
            owner, feature = path.split(".")[:2]
            if owner == role and feature in found:
                _put(found, path, vocabulary)
    return found


def _put(tree: dict[str, Any], path: str, vocabulary: Vocabulary) -> None:
    *parents, leaf = path.split(".")[1:]
    for name in parents:
        tree = tree.setdefault(name, {})
    tree.setdefault(leaf, True if path in vocabulary.flags else {})


def merge(tree: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """`tree` with everything that `more` adds, at any depth."""
    merged = dict(tree)
    for name, value in more.items():
        known = merged.get(name)
        merged[name] = merge(known, value) if is_object(known) and is_object(value) else value
    return merged


def is_declared(tree: Mapping[str, Any], path: str) -> bool:
    """Whether `tree` declares the dotted `path` (without its owner)."""
    node: Any = tree
    for name in path.split("."):
        node = node.get(name) if is_object(node) else None
        if node is None or node is False:
            return False
    return True


def missing(method: Method, role: Role, declared: Mapping[Role, Mapping[str, Any]]) -> str | None:
    """The capability that `method` needs and nobody declared; `None` when it may be sent by `role`."""
    path = method.capabilities.get(role)
    if path is None or method.name in (PING, LOG):
        return None
    owner, _, feature = path.partition(".")
    return None if is_declared(declared["client" if owner == "client" else "server"], feature) else path
