"""Compare methods, directions, carriers and error codes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mcp_bindgen.ir.model import Method, Protocol, Sender, Type

from .finding import Message
from .reach import sent

HANDSHAKE = frozenset({"initialize", "notifications/initialized"})
"""Method that a stateful peer requires first."""

OPENINGS = HANDSHAKE | {"server/discover"}
"""Methods that open a connection of either era."""


@dataclass(frozen=True)
class MessageChange:
    """Change of a message or an error code.

    Attributes:
        rule: Id of the rule.
        subject: Name of the message or error.
        group: Group in reports.
        descriptions: Short descriptions of the old and the new state.
        message: The message; `None` for an error code.
        methods: The old and the new method.
        gate: Capability that the message requires.
        insisted: True if the message is mandatory for the side that has it.
        parts: Rules with the impacts of the change, if they differ from its own rule.
    """

    rule: str
    subject: str
    group: str
    descriptions: tuple[str, str]
    message: Message | None = None
    methods: tuple[Method | None, Method | None] = (None, None)
    gate: str = ""
    insisted: bool = False
    parts: tuple[str, ...] = ()


def message_changes(old: Protocol, new: Protocol) -> Iterator[MessageChange]:
    """Find changed methods and error codes."""
    before, after = sent(old), sent(new)
    for message in sorted(before.keys() | after.keys()):
        was, now = before.get(message), after.get(message)
        if was is None or now is None:
            yield _one_sided(message, was, now, new if now is None else old)
        elif was.carrier != now.carrier:
            rule, descriptions = "message-carrier-changed", (was.carrier, now.carrier)
            yield MessageChange(rule, str(message), message.method, descriptions, message, (was, now))
    yield from _error_changes(old, new)


def _one_sided(message: Message, was: Method | None, now: Method | None, other: Protocol) -> MessageChange:
    """Return the change for a message that the revision `other` does not have."""
    change, method = ("removed", was) if was is not None else ("added", now)
    assert method is not None
    whole = f"request-method-{change}" if message.kind == "request" else f"notification-{change}"
    known = any(known.name == message.method and known.kind == message.kind for known in other.methods)
    return MessageChange(
        rule=f"message-direction-{change}" if known else whole,
        subject=str(message),
        group=message.method,
        descriptions=(was.definition if was else "", now.definition if now else ""),
        message=message,
        methods=(was, now),
        gate=_gate(method, message.sender, other),
        insisted=message.method in HANDSHAKE,
        parts=(whole,),
    )


def _gate(method: Method, sender: Sender, other: Protocol) -> str:
    """Return the capability that the receiver must declare, if the other revision does not have it."""
    needed = method.capability(sender)
    known = {capability.name for capability in other.capabilities}
    return needed if needed is not None and not needed.startswith(sender) and needed not in known else ""


def _error_changes(old: Protocol, new: Protocol) -> Iterator[MessageChange]:
    """Find changed error codes. Codes that `semantics.toml` dates are compared between our revisions only."""
    dated = old.origin == new.origin
    before, after = (
        {error.name: error for error in protocol.errors if dated or not error.until} for protocol in (old, new)
    )
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if was and now and was.code != now.code:
            descriptions = str(was.code), str(now.code)
            yield MessageChange("error-code-renumbered", f"{now.code} {name}", "errors", descriptions)
        elif now and not was:
            yield MessageChange("error-code-added", f"{now.code} {name}", "errors", ("", now.doc or name))
        elif was and not now:
            yield MessageChange("error-code-removed", f"{was.code} {name}", "errors", (was.doc or name, ""))


def is_asked_for(protocol: Protocol, method: str, answer: Type | None) -> bool:
    """Return whether a result of the message `method` must be requested by its params.

    If the schema states the result, in `XResultResponse`, any request may have it.
    """
    response = protocol.definitions.get(f"{method.removesuffix('Request')}ResultResponse")
    main = {known.result for known in protocol.methods if known.definition == method}
    return response is None and answer not in main
