"""The result of a comparison of two revisions: findings, and a verdict for each pairing of an old with a new side."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from functools import cached_property
from hashlib import sha256
from typing import Any

from mcp_bindgen.protocol.model import Kind, Method, Protocol, Sender
from mcp_bindgen.spec import Decision
from mcp_bindgen.spec.git import Commit


class Impact(IntEnum):
    """The effect of a change on one pairing; the worse, the greater."""

    NONE = 0
    """Not visible on the wire."""
    SAFE = 1
    """Both sides understand each other as before."""
    IGNORED = 2
    """The receiver does not know what it gets, and may ignore it."""
    RISKY = 3
    """The message is accepted, but perhaps not understood as it was meant."""
    BREAKS = 4
    """The receiver rejects what the sender may say."""


class Plane(StrEnum):
    """The plane on which a change shows."""

    WIRE = "wire"
    SOURCE = "source"
    """In generated code only."""
    DOC = "doc"


class Severity(IntEnum):
    """The attention that a finding asks of its reader."""

    INFO = 0
    RISKY = 1
    BREAKING = 2


class Outcome(IntEnum):
    """The verdict on whether the two sides of a pairing can work together."""

    WORKS = 0
    LIMITED = 1
    CANNOT_TALK = 2


@dataclass(frozen=True, order=True)
class Message:
    """A message of the protocol in one direction.

    Attributes:
        method: Its name on the wire.
        kind: Request or notification.
        sender: Who sends it.
    """

    method: str
    kind: Kind
    sender: Sender

    @classmethod
    def of(cls, method: Method, sender: Sender) -> Message:
        """Return the message by which `sender` calls a method."""
        return cls(method.name, method.kind, sender)

    def __str__(self) -> str:
        other = "server" if self.sender == "client" else "client"
        return f"{self.sender}->{other} {self.kind} {self.method}"


@dataclass(frozen=True)
class Witness:
    """A JSON value that shows a change.

    Attributes:
        instance: The value.
        definition_old: The definition of the old revision that it was held against, if there is one.
        definition_new: Likewise of the new revision.
        old_accepts: Whether the old revision accepts it.
        new_accepts: Whether the new one does.
    """

    instance: Any = field(hash=False)
    definition_old: str
    definition_new: str
    old_accepts: bool
    new_accepts: bool

    @property
    def judgements(self) -> tuple[str, str]:
        """What the old and the new revision do with it, in a word."""
        return "accepts" if self.old_accepts else "rejects", "accepts" if self.new_accepts else "rejects"


@dataclass(frozen=True)
class Finding:
    """One change between two revisions.

    Attributes:
        rule: The id of the rule that found it, e.g. `field-added-optional`.
        subject: What changed, e.g. `Tool.annotations` or `client->server request tools/call`.
        group: Where reports list it: a method name or a definition.
        plane: Where it shows.
        old_client: Its impact when an old client meets a new server.
        new_client: Its impact when a new client meets an old server.
        old: What there was, in a few words; empty for what is new.
        new: What there is; empty for what is gone.
        reaches: The messages that it reaches.
        hint: What to do about it.
        gate: What must be declared or asked for first, which makes it safe, e.g. a capability, if anything.
        definition_old: The definition of the old revision that it is about, if any.
        definition_new: The definition of the new revision that it is about, if any.
        witness: A value that shows it.
        unwitnessed: Why there is no witness, when a finding on the wire has none.
    """

    rule: str
    subject: str
    group: str
    plane: Plane
    old_client: Impact
    new_client: Impact
    old: str = ""
    new: str = ""
    reaches: tuple[Message, ...] = ()
    hint: str = ""
    definition_old: str = ""
    definition_new: str = ""
    witness: Witness | None = None
    unwitnessed: str = ""
    gate: str = ""

    @property
    def severity(self) -> Severity:
        """What its worse pairing makes of it."""
        worst = max(self.old_client, self.new_client)
        if worst is Impact.BREAKS:
            return Severity.BREAKING
        return Severity.RISKY if worst is Impact.RISKY else Severity.INFO

    @cached_property
    def fingerprint(self) -> str:
        """Names the change itself: the same whatever the words of rules and hints, 16 hexadecimal digits."""
        return sha256("\0".join((self.rule, self.subject, self.old, self.new)).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Verdict:
    """The verdict on a pairing.

    Attributes:
        outcome: Whether it can.
        reasons: Why not fully, in short sentences.
    """

    outcome: Outcome
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Two revisions, compared.

    Attributes:
        old: The old revision.
        new: The new one.
        old_client: How an old client gets on with a new server.
        new_client: How a new client gets on with an old server.
        findings: What changed: the worst first within each group, groups in the order of their worst.
        commits: The commits that made the new one of the old one, oldest first, where they are known.
    """

    old: Protocol
    new: Protocol
    old_client: Verdict
    new_client: Verdict
    findings: tuple[Finding, ...]
    commits: tuple[Commit, ...] = ()

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """How the schemas were read where they break a rule; of a commit, only where the one before did not."""
        before, after = self.old.decisions, self.new.decisions
        if self.commits:
            return tuple(decision for decision in after if decision not in before)
        return tuple(dict.fromkeys(before + after))

    @property
    def compares_words(self) -> bool:
        """Whether descriptions and deprecations were compared: those of ours and those of others are not."""
        return self.old.origin == self.new.origin
