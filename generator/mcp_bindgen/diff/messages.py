"""Compare what the two revisions talk about: methods, directions, carriers and error codes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mcp_bindgen.protocol.model import Method, Protocol, Sender, Type

from .finding import Message
from .reach import sent

HANDSHAKE = frozenset({"initialize", "notifications/initialized"})
"""What a stateful peer insists on before anything else."""


@dataclass(frozen=True)
class MessageChange:
    """Something that differs in the messages themselves.

    Attributes:
        rule: The rule that it falls under.
        subject: What it is.
        group: What it is listed under.
        words: What there was and what there is, in a few words.
        message: The message; none for an error code.
        methods: The old and the new method.
        gate: The capability without which it is not sent.
        insisted: Whether the side that has it does not work without it.
        parts: The rules whose impacts it has, where they are not those of its own.
    """

    rule: str
    subject: str
    group: str
    words: tuple[str, str]
    message: Message | None = None
    methods: tuple[Method | None, Method | None] = (None, None)
    gate: str = ""
    insisted: bool = False
    parts: tuple[str, ...] = ()


def message_changes(old: Protocol, new: Protocol) -> Iterator[MessageChange]:
    """Find what differs in methods, and in error codes."""
    before, after = sent(old), sent(new)
    for message in sorted(before.keys() | after.keys()):
        was, now = before.get(message), after.get(message)
        if was is None or now is None:
            yield _one_sided(message, was, now, new if now is None else old)
        elif was.carrier != now.carrier:
            rule, words = "message-carrier-changed", (was.carrier, now.carrier)
            yield MessageChange(rule, str(message), message.method, words, message, (was, now))
    yield from _error_changes(old, new)


def _one_sided(message: Message, was: Method | None, now: Method | None, other: Protocol) -> MessageChange:
    """Return a message that `other`, one of the two revisions, does not have."""
    change, method = ("removed", was) if was is not None else ("added", now)
    assert method is not None
    whole = f"request-method-{change}" if message.kind == "request" else f"notification-{change}"
    known = any(known.name == message.method and known.kind == message.kind for known in other.methods)
    return MessageChange(
        rule=f"message-direction-{change}" if known else whole,
        subject=str(message),
        group=message.method,
        words=(was.definition if was else "", now.definition if now else ""),
        message=message,
        methods=(was, now),
        gate=_gate(method, message.sender, other),
        insisted=message.method in HANDSHAKE,
        parts=(whole,),
    )


def _gate(method: Method, sender: Sender, other: Protocol) -> str:
    """Return the capability that the receiver would have to declare, where the other revision does not know it."""
    needed = method.capability(sender)
    known = {capability.name for capability in other.capabilities}
    return needed if needed is not None and not needed.startswith(sender) and needed not in known else ""


def _error_changes(old: Protocol, new: Protocol) -> Iterator[MessageChange]:
    """Find changed error codes; those that only the dates of our revisions tell count between such only."""
    dated = old.origin == new.origin
    before, after = (
        {error.name: error for error in protocol.errors if dated or not error.until} for protocol in (old, new)
    )
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if was and now and was.code != now.code:
            words = str(was.code), str(now.code)
            yield MessageChange("error-code-renumbered", f"{now.code} {name}", "errors", words)
        elif now and not was:
            yield MessageChange("error-code-added", f"{now.code} {name}", "errors", ("", now.doc or name))
        elif was and not now:
            yield MessageChange("error-code-removed", f"{was.code} {name}", "errors", (was.doc or name, ""))


def is_asked_for(protocol: Protocol, method: str, answer: Type | None) -> bool:
    """Return whether an answer to the message `method` is given only to a request whose params ask for it.

    Where the schema itself says what answers a request, in `XResultResponse`, any request may be answered so.
    """
    response = protocol.definitions.get(f"{method.removesuffix('Request')}ResultResponse")
    main = {known.result for known in protocol.methods if known.definition == method}
    return response is None and answer not in main
