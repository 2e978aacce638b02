"""Table of rules: the impact of each kind of change on each pairing.

A change affects two pairings: old client with new server, and new client with old server. A pairing is sound if the
receiver accepts every message of the sender. A sender sends only members that its revision declares; a receiver ignores
unknown members. In messages of clients, a narrower type breaks old clients with new servers, and a wider type breaks
new clients with old servers. In messages of servers it is the opposite.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mcp_bindgen.ir.model import Sender

from .finding import Impact, Plane

Impacts = tuple[Impact, Impact]
"""Impact on an old client with a new server, and on a new client with an old server."""

_BREAKS, _RISKY, _IGNORED, _SAFE, _NONE = Impact.BREAKS, Impact.RISKY, Impact.IGNORED, Impact.SAFE, Impact.NONE


@dataclass(frozen=True)
class Rule:
    """Kind of change.

    Attributes:
        id: Name of the rule.
        mirror: Rule for the same change with old and new exchanged.
        client: Impacts in messages of clients.
        server: Impacts in messages of servers.
        says: Predicate of the sentence with the subject; `{old}` and `{new}` are short descriptions of the two states.
        hint: Recommended action.
        plane: Place where the change is visible, if a message contains it.
    """

    id: str
    mirror: str
    client: Impacts
    server: Impacts
    says: str
    hint: str
    plane: Plane = Plane.WIRE


def _pair(forth: Impacts, one: tuple[str, str, str], other: tuple[str, str, str]) -> tuple[Rule, Rule]:
    """Return the two rules of a change and its inverse, from id, text and hint of each.

    `forth` are the impacts of the first rule in messages of clients. Servers, and the inverse, swap the pairings.
    """
    back = forth[1], forth[0]
    return Rule(one[0], other[0], forth, back, *one[1:]), Rule(other[0], one[0], back, forth, *other[1:])


def _alike(id: str, both: Impact, says: str, hint: str) -> Rule:
    """Return a rule that is its own mirror and has the same impact on every pairing."""
    return Rule(id, id, (both, both), (both, both), says, hint)


def _off_wire(id: str, mirror: str, says: str, hint: str, plane: Plane = Plane.SOURCE) -> Rule:
    return Rule(id, mirror, (_NONE, _NONE), (_NONE, _NONE), says, hint, plane)


NARROWS = (_BREAKS, _SAFE)
"""Impacts of a narrower type in messages of clients."""

_WAS = "was {old}, is {new}"
_FEWER = "Send only what the new revision accepts."
_MORE = "Accept more than before; do not send the new values to an old side."

_MESSAGES = (
    *_pair(
        (_SAFE, _BREAKS),
        ("request-method-added", "is new", "Offer it; call it only where the other side has it."),
        ("request-method-removed", "is gone", "Stop calling it in the new revision."),
    ),
    *_pair(
        (_SAFE, _RISKY),
        ("notification-added", "is new", "Handle it; do not rely on an old side to."),
        ("notification-removed", "is gone", "Do not wait for it, and stop sending it."),
    ),
    *_pair(
        (_SAFE, _BREAKS),
        ("message-direction-added", "is sent in this direction as well", "Handle it on the other side too."),
        ("message-direction-removed", "is no longer sent in this direction", "Send it in the other direction only."),
    ),
    _alike(
        "message-carrier-changed", _BREAKS,
        "travelled as {old}, travels as {new}", "Send and handle it where the new revision carries it.",
    ),
)  # fmt: skip

_MEMBERS = (
    *_pair(
        (_SAFE, _IGNORED),
        ("field-added-optional", "is new and optional: {new}", "Use it where it helps; an old side ignores it."),
        ("field-removed-optional", "is gone; it was {old}", "Stop sending it, and do not expect it."),
    ),
    *_pair(
        (_BREAKS, _IGNORED),
        ("field-added-required", "is new and required: {new}",
         "Always send it, and do without it where the other side is old."),
        ("field-removed-required", "is gone; it was required: {old}", "Do not expect it; an old side still needs it."),
    ),
    *_pair(
        NARROWS,
        ("field-became-required", "is required now", "Always send it."),
        ("field-became-optional", "is optional now", "Do without it where it is absent; an old side still needs it."),
    ),
    *_pair(
        (_RISKY, _IGNORED),
        ("field-closed", "is a named member now: {new}; before, the object took it unnamed, as {old}",
         "Send it as its type says, and always if it is required."),
        ("field-opened", "is no named member any more, but the object takes it unnamed, as {new}; it was {old}",
         "Keep it, under the same name. Only its type is no longer stated: check the value where you read it."),
    ),
    _alike("field-renamed", _RISKY, "is the new name of {old}",
           "Send and read the new name; a side of the other revision ignores it without an error."),
    _alike("field-moved", _RISKY, "stands here now; it was {old}",
           "Send and read it in its new place; a side of the other revision ignores it there without an error."),
    *_pair(
        NARROWS,
        ("additional-properties-closed", "has no members but those that are named now",
         "Send only the members that are named."),
        ("additional-properties-opened", "may have other members than those that are named",
         "Ignore members that you do not know."),
    ),
)  # fmt: skip

TYPES = (
    *_pair(NARROWS, ("type-narrowed", _WAS, _FEWER), ("type-widened", _WAS, _MORE)),
    *_pair(
        NARROWS,
        ("became-non-nullable", "may not be null any more", "Send a value instead of null."),
        ("became-nullable", "may be null", "Accept null; do not send it to an old side."),
    ),
    *_pair(
        NARROWS,
        ("number-to-integer", "is a whole number now", "Send whole numbers only."),
        ("integer-to-number", "may have a fraction", "Accept fractions; do not send them to an old side."),
    ),
    *_pair(
        NARROWS,
        ("enum-value-removed", "may not be {old} any more", _FEWER),
        ("enum-value-added", "may be {new}", "Treat values that you do not know with care."),
    ),
    *_pair(
        NARROWS,
        ("const-added", "is always {new} now; it was {old}", "Send exactly this value."),
        ("const-removed", "was always {old}, is {new}", _MORE),
    ),
    *_pair(
        NARROWS,
        ("union-member-removed", "is no form any more", "Send one of the others."),
        ("union-member-added", "is a new form", "Handle the new form; do not send it to an old side."),
    ),
    *_pair(NARROWS, ("constraint-tightened", _WAS, _FEWER), ("constraint-loosened", _WAS, _MORE)),
    _alike("type-changed", _BREAKS, _WAS, "Send and read the new type."),
    _alike("const-changed", _BREAKS, _WAS, "Send and expect the new value."),
    _alike("pattern-changed", _RISKY, _WAS, "Check your values against the new pattern."),
    _alike("default-changed", _RISKY, "means {new} where it is absent; it was {old}", "Write it where it matters."),
    _alike("format-changed", _RISKY, _WAS, "Check your values against the new format."),
)
"""Rules about changed types."""

_OTHERS = (
    Rule(
        "capability-added", "capability-removed", (_SAFE, _IGNORED), (_IGNORED, _SAFE),
        "may be declared", "Declare it when you support it.",
    ),
    Rule(
        "capability-removed", "capability-added", (_RISKY, _RISKY), (_RISKY, _RISKY),
        "is no capability any more", "Do not declare it, and do not expect it to be understood.",
    ),
    _alike(
        "extension-broken", _BREAKS,
        "breaks under the id that it has: {old} and {new} cannot be told apart", "Give what breaks an id of its own.",
    ),
    Rule(
        "error-code-added", "error-code-removed", (_NONE, _NONE), (_RISKY, _SAFE),
        "is new", "Handle it; to an old side it is an error like any other.",
    ),
    Rule(
        "error-code-removed", "error-code-added", (_NONE, _NONE), (_SAFE, _IGNORED),
        "is gone", "Do not wait for it.",
    ),
    Rule(
        "error-code-renumbered", "error-code-renumbered", (_NONE, _NONE), (_RISKY, _RISKY),
        "was {old}", "Compare with the new code.",
    ),
)  # fmt: skip

_NAMES = (
    _off_wire("definition-added", "definition-removed", "is new", "There is a new name to use."),
    _off_wire("definition-removed", "definition-added", "is gone", "Code that names it must do without."),
    _off_wire("definition-renamed", "definition-renamed", "is called {new} now", "Rename it in code that uses it."),
    _off_wire(
        "definition-redefined", "definition-redefined",
        "is something else: " + _WAS, "Look at each use of the name in code.",
    ),
    _off_wire("ref-extracted", "ref-inlined", "was {old}", "Use the definition where code names the inline type."),
    _off_wire("ref-inlined", "ref-extracted", "is {new} now", "Use the inline type where code names the definition."),
    _off_wire(
        "envelope-inlined", "envelope-extracted",
        "repeats the envelope: {new}", "Nothing: the runtime writes it.",
    ),
    _off_wire(
        "envelope-extracted", "envelope-inlined",
        "leaves the envelope out: {old}", "Nothing: the runtime writes it.",
    ),
    _off_wire("deprecated", "undeprecated", "is deprecated {new}", "Plan to replace it.", Plane.DOC),
    _off_wire("undeprecated", "deprecated", "is no longer deprecated", "It may be used again.", Plane.DOC),
    _off_wire("description-changed", "description-changed", "is described otherwise", "Read what it means.", Plane.DOC),
)  # fmt: skip

RULES = {rule.id: rule for rule in (*_MESSAGES, *_MEMBERS, *TYPES, *_OTHERS, *_NAMES)}
"""Rule id -> rule."""


def impacts(rules: Iterable[str], senders: Iterable[Sender]) -> Impacts:
    """Return the worst impacts of all `rules` in the messages of `senders`."""
    both = tuple(senders)
    cells = [RULES[rule].client if sender == "client" else RULES[rule].server for rule in rules for sender in both]
    return (
        max((cell[0] for cell in cells), default=_NONE),
        max((cell[1] for cell in cells), default=_NONE),
    )
