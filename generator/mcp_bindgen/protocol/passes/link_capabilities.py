"""Say which capability must be declared before a message may be sent."""

from __future__ import annotations

from dataclasses import replace

from .. import naming
from ..model import Method, Sender
from .draft import Draft

_OTHER: dict[Sender, Sender] = {"client": "server", "server": "client"}


def link_capabilities(draft: Draft) -> Draft:
    """Fill in the capabilities of the methods.

    The namesake rule: a request needs what its receiver declares, a notification what its sender declares, under the
    first segment of the method's name, and below it the last segment where there is such a member (`tools/list` ->
    `server.tools`, `notifications/tools/list_changed` -> `server.tools.listChanged`). `semantics.toml` has the rest.
    """
    declared = {capability.name for capability in draft.capabilities}
    methods = {name: _linked(method, draft, declared) for name, method in draft.methods.items()}
    return replace(draft, methods=methods)


def _linked(method: Method, draft: Draft, declared: set[str]) -> Method:
    stated = draft.semantics["capabilities"].get(method.name)
    links: list[tuple[Sender, str]] = []
    for sender in method.senders:
        capability = stated if stated in declared else _namesake(method, sender, declared)
        if capability is not None:
            links.append((sender, capability))
    return replace(method, capabilities=tuple(links))


def _namesake(method: Method, sender: Sender, declared: set[str]) -> str | None:
    segments = method.name.removeprefix("notifications/").split("/")
    if len(segments) < 2:
        return None
    owner = _OTHER[sender] if method.kind == "request" else sender
    leaf = "".join(word.capitalize() for word in naming.words(segments[-1]))
    leaf = leaf[:1].lower() + leaf[1:]
    below, whole = f"{owner}.{segments[0]}.{leaf}", f"{owner}.{segments[0]}"
    return below if below in declared else whole if whole in declared else None
