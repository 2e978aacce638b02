"""Diagrams of messages, derived from the methods of a revision."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import Extension, Method, Ref, Sender, Type, references

from ..markdown import block
from .model import method

_HANDSHAKE = "when a client connects"
"""The `lifecycle` of messages that open a connection."""


def diagram(lines: Iterator[str]) -> str:
    """Return a sequence diagram."""
    text = ["sequenceDiagram", "  participant client", "  participant server", *(f"  {line}" for line in lines)]
    return block("\n".join(text), "mermaid")


def method_flow(protocol: Protocol, found: Method, *, may_ask: bool = False) -> str:
    """Return the diagram of a method: its messages in a usual exchange.

    Args:
        protocol: The revision.
        found: The method.
        may_ask: True if its handler may ask the sender for input.
    """
    return diagram(_method(protocol, found, may_ask))


def method_asks(protocol: Protocol, found: Method) -> bool:
    """Return True if a result of the method may contain requests for input."""
    return bool(_questions(protocol, found))


def _method(protocol: Protocol, found: Method, may_ask: bool) -> Iterator[str]:
    if found.carrier == "embedded":
        yield from _embedded(protocol, found)
    elif found.kind == "notification":
        yield from _notification(protocol, found)
    else:
        yield from _request(protocol, found, may_ask)


def _request(protocol: Protocol, found: Method, may_ask: bool) -> Iterator[str]:
    sender = found.senders[0]
    yield _send(sender, f"request {found.name}")
    if found.lifecycle and (delivered := list(_delivered(protocol, found))):
        for one in protocol.methods:
            if one.kind == "notification" and one.lifecycle and _acknowledges(one, found):
                yield _notify(_other(sender), one.name)
        yield "loop until the subscription ends"
        for one in delivered:
            yield f"  {_notify(_other(sender), one.name)}"
        yield "end"
    elif progress := _progress(protocol, found):
        yield "opt the request has a progress token"
        yield f"  {_notify(_other(sender), progress)}"
        yield "end"
    questions = _questions(protocol, found)
    others = [type for type in _alternatives(protocol, found) if _name(type) not in questions]
    if asking := [one.name for one in protocol.methods if _is_question(one, sender)] if may_ask else []:
        yield f"opt the {_other(sender)} needs input"
        yield f"  {_send(_other(sender), f'request {_joined(asking)}')}"
        yield f"  {_answer(sender, 'result')}"
        yield "end"
    for name in questions:
        yield f"opt the result is {_label(name)}"
        yield f"  {_answer(_other(sender), name)}"
        yield f"  Note over {sender}: answer {_label(_joined(one.name for one in _inside(protocol, name)))}"
        yield f"  {_send(sender, f'request {found.name}, with the answers')}"
        yield "end"
    for type in others:
        member = f" (requested by {found.opt_in})" if found.opt_in else ""
        yield f"alt the result is {_label(_name(type) + member)}"
        yield f"  {_answer(_other(sender), _name(type))}"
        yield "else"
    yield ("  " if others else "") + _answer(_other(sender), _name(found.result) if found.result else "result")
    if others:
        yield "end"


def _notification(protocol: Protocol, found: Method) -> Iterator[str]:
    if (subscription := _subscription(protocol, found)) is not None and found.filter is not None:
        yield _send(subscription.senders[0], f"request {subscription.name} with {found.filter.member}")
    elif request := _enabling(protocol, found):
        yield _send(request.senders[0], f"request {request.name}")
        yield _answer(_other(request.senders[0]), _name(request.result) if request.result else "result")
    elif found.name == dict(protocol.facts.utilities).get("progress"):
        yield _send(_other(found.senders[-1]), "request with a progress token")
    elif found.name == dict(protocol.facts.utilities).get("cancelled"):
        yield _send(found.senders[0], "request")
    yield _notify(found.senders[-1] if len(found.senders) == 1 else _usual(protocol, found), found.name)
    for name in dict(protocol.facts.cache_invalidations).get(found.name, ()):
        if (stale := method(protocol, name)) is not None:
            yield _send(stale.senders[0], f"request {name}, as cached results are out of date")


def _usual(protocol: Protocol, found: Method) -> Sender:
    """Return the side to show as sender of a notification that both sides may send."""
    return "client" if found.name == dict(protocol.facts.utilities).get("cancelled") else "server"


def _embedded(protocol: Protocol, found: Method) -> Iterator[str]:
    hosts = [one for one in protocol.methods for name in _questions(protocol, one) if found in _inside(protocol, name)]
    if hosts:
        host = hosts[-1]
        (name, *_) = _questions(protocol, host)
        asker = host.senders[0]
        yield _send(asker, f"request {_joined(one.name for one in hosts)}")
        yield _answer(_other(asker), f"{name} with {found.name}")
        yield f"Note over {asker}: make {_label(_name(found.result)) if found.result else 'the result'}"
        yield _send(asker, "the same request, with the answer")
        yield _answer(_other(asker), "result")


def lifecycle_flow(protocol: Protocol) -> str:
    """Return the diagram of a connection: how it opens, and the messages that either side may send."""

    def lines() -> Iterator[str]:
        opening = [one for one in protocol.methods if one.lifecycle == _HANDSHAKE]
        for one in sorted(opening, key=lambda one: one.kind != "request"):
            if one.kind == "request":
                yield _send(one.senders[0], f"request {one.name}")
                yield _answer(_other(one.senders[0]), _name(one.result) if one.result else "result")
            else:
                yield _notify(one.senders[0], one.name)
        for sender in ("client", "server"):
            usual = [one for one in protocol.methods if one.carrier == "message" and not one.lifecycle]
            requests = [one for one in usual if one.kind == "request" and sender in one.senders]
            notes = [one for one in usual if one.kind == "notification" and sender in one.senders]
            if requests or notes:
                yield f"loop messages of the {sender}"
                if requests:
                    yield f"  {_send(sender, 'request')}"
                    yield f"  {_answer(_other(sender), 'result or error')}"
                if notes:
                    yield f"  {_notify(sender, 'notification')}"
                yield "end"

    return diagram(lines())


def extension_flow(protocol: Protocol, extension: Extension) -> str:
    """Return the diagram of an extension: the results that it adds to methods of the core, and its own methods."""

    def lines() -> Iterator[str]:
        for name, types in extension.alternatives:
            host = method(protocol, name)
            if host is not None:
                yield _send(host.senders[0], f"request {name}")
                yield _answer(_other(host.senders[0]), " or ".join(types))
        for one in sorted(protocol.methods, key=lambda one: (one.kind == "notification", one.name)):
            if one.origin == extension.id:
                yield "opt"
                if one.kind == "request":
                    yield f"  {_send(one.senders[0], f'request {one.name}')}"
                    yield f"  {_answer(_other(one.senders[0]), _name(one.result) if one.result else 'result')}"
                else:
                    yield f"  {_notify(one.senders[0], one.name)}"
                yield "end"

    found = list(lines())
    return diagram(iter(found)) if found else ""


# --- what the model says --------------------------------------------------------------------------------------


def _questions(protocol: Protocol, found: Method) -> list[str]:
    """Return the alternative results that contain embedded requests."""
    return [name for name in map(_name, found.alternatives) if _inside(protocol, name)]


def _inside(protocol: Protocol, name: str) -> list[Method]:
    """Return the embedded requests that a result contains."""
    reached = protocol.reach([name]) if name in protocol.definitions else {}
    return [one for one in protocol.methods if one.carrier == "embedded" and one.definition in reached]


def _is_question(one: Method, asked: Sender) -> bool:
    """Return True for a request that only the other side of `asked` sends, as a message of its own."""
    return one.kind == "request" and one.carrier == "message" and one.senders == (_other(asked),)


def _alternatives(protocol: Protocol, found: Method) -> list[Type]:
    """Return the other results of a request, those of extensions among them."""
    added = (name for one in protocol.extensions for name in dict(one.alternatives).get(found.name, ()))
    return [*found.alternatives, *map(Ref, added)]


def _progress(protocol: Protocol, found: Method) -> str | None:
    """Return the notification of progress, if the receiver of a request may send it."""
    progress = method(protocol, dict(protocol.facts.utilities).get("progress", ""))
    receiver = _other(found.senders[0])
    return progress.name if progress is not None and receiver in progress.senders and not found.lifecycle else None


def _delivered(protocol: Protocol, request: Method) -> Iterator[Method]:
    """Yield the notifications that the filter of a subscription may request."""
    reached = protocol.reach(list(references(request.params))) if request.params is not None else {}
    extended = {other for one in protocol.extensions for name, other in one.extends if name in reached}
    for one in protocol.methods:
        if one.filter is not None and (one.filter.definition in reached or one.filter.definition in extended):
            yield one


def _subscription(protocol: Protocol, found: Method) -> Method | None:
    return next((one for one in protocol.methods if one.kind == "request" and found in _delivered(protocol, one)), None)


def _acknowledges(notification: Method, request: Method) -> bool:
    """Return True for `notifications/subscriptions/acknowledged` and `subscriptions/listen`."""
    return notification.name.split("/")[-2:-1] == [request.name.partition("/")[0]]


def _enabling(protocol: Protocol, found: Method) -> Method | None:
    """Return the request that needs the same nested capability as a notification, such as a subscription."""
    needed = {name for _, name in found.capabilities if name.count(".") > 1}
    return next(
        (
            one
            for one in protocol.methods
            if one.kind == "request" and needed & {name for _, name in one.capabilities} and one.carrier == "message"
        ),
        None,
    )


def _name(type: Type | None) -> str:
    names = list(references(type)) if type is not None else []
    return names[0] if names else "result"


def _other(side: Sender) -> Sender:
    return "server" if side == "client" else "client"


def _label(text: str) -> str:
    """Return text without characters that end a label of a diagram: Mermaid shows their numbers as characters."""
    return re.sub(r"[^\w /.,()$-]", lambda found: f"#{ord(found[0])};", text)


def _send(sender: Sender, text: str) -> str:
    return f"{sender}->>{_other(sender)}: {_label(text)}"


def _answer(sender: Sender, text: str) -> str:
    return f"{sender}-->>{_other(sender)}: {_label(text)}"


def _notify(sender: Sender, text: str) -> str:
    return f"{sender}-){_other(sender)}: {_label(text)}"


def _joined(names: Iterable[str]) -> str:
    found = list(names)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} or {found[-1]}"
