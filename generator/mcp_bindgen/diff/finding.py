"""Result of a comparison of two revisions: findings, and a verdict for each pairing of an old with a new side.

The rules of `rules.toml` state the impact of each kind of change on each pairing: old client with new server, and new
client with old server. A pairing is sound if the receiver accepts every message of the sender. A sender sends only
members that its revision declares; a receiver ignores unknown members. In messages of clients, a narrower type breaks
old clients with new servers, and a wider type breaks new clients with old servers. In messages of servers it is the
opposite.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import GetCoreSchemaHandler, PlainSerializer, computed_field
from pydantic_core import core_schema

from mcp_bindgen.ir.model import OTHER_SIDE, Kind, Method, Protocol, Sender
from mcp_bindgen.spec import Diagnostic
from mcp_bindgen.spec.git import Commit
from mcp_bindgen.spec.toml import read_toml

OrNull: TypeAlias = Annotated[str, PlainSerializer(lambda text: text or None, return_type=str | None)]
"""A text; `null` in JSON where it is empty."""


class Level(IntEnum):
    """Step of a scale, with its name as JSON."""

    @property
    def word(self) -> str:
        """The name of the step."""
        return self.name.lower().replace("_", "-")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        words = core_schema.literal_schema([one.word for one in cls])
        serialization = core_schema.plain_serializer_function_ser_schema(lambda level: level.word, return_schema=words)
        return core_schema.is_instance_schema(cls, serialization=serialization)


class Impact(Level):
    """Effect of a change on one pairing; a greater value is worse."""

    NONE = 0
    """Not visible on the wire."""
    SAFE = 1
    """No effect on either side."""
    IGNORED = 2
    """The receiver may ignore the unknown value."""
    RISKY = 3
    """The receiver accepts the message, but may misinterpret it."""
    BREAKS = 4
    """The receiver rejects some messages of the sender."""


class Plane(StrEnum):
    """Place where a change is visible."""

    WIRE = "wire"
    SOURCE = "source"
    """In generated code only."""
    DOC = "doc"


class Area(StrEnum):
    """Part of the protocol that a change is about, in the order of reports."""

    LIFECYCLE = "lifecycle"
    """The opening of a connection, the envelope, and what every request or every response carries."""
    METHODS = "methods"
    MEMBERS = "members"
    ERRORS = "errors"


class Severity(Level):
    """Severity of a finding."""

    INFO = 0
    RISKY = 1
    BREAKING = 2


class Outcome(Level):
    """Compatibility of the two sides of a pairing."""

    WORKS = 0
    LIMITED = 1
    CANNOT_TALK = 2


@dataclass(frozen=True, order=True)
class Message:
    """Message of the protocol in one direction.

    Attributes:
        method: Name of the method on the wire.
        kind: Request or notification.
        sender: Side that sends it.
    """

    method: str
    kind: Kind
    sender: Sender

    @classmethod
    def of(cls, method: Method, sender: Sender) -> Message:
        """Return the message of a method in the direction of `sender`."""
        return cls(method.name, method.kind, sender)

    def __str__(self) -> str:
        return f"{self.sender}->{OTHER_SIDE[self.sender]} {self.kind} {self.method}"


@dataclass(frozen=True)
class Witness:
    """JSON value that proves a change.

    Attributes:
        instance: The value.
        definition_old: Definition of the old revision that judged the value; empty for an inline type.
        definition_new: Definition of the new revision that judged the value; empty for an inline type.
        old_accepts: True if the old revision accepts it.
        new_accepts: True if the new revision accepts it.
    """

    instance: Any = field(hash=False)
    definition_old: OrNull
    definition_new: OrNull
    old_accepts: bool
    new_accepts: bool

    @property
    def judgements(self) -> tuple[str, str]:
        """Verdicts of the old and of the new revision on the value."""
        return "accepts" if self.old_accepts else "rejects", "accepts" if self.new_accepts else "rejects"


@dataclass(frozen=True)
class Finding:
    """Change between two revisions.

    Attributes:
        rule: Id of the rule, e.g. `field-added-optional`.
        subject: Changed method, definition or member, e.g. `Tool.annotations` or `client->server request tools/call`.
        group: Group in reports: a method or a definition.
        plane: Place where it is visible.
        old_client: Impact on an old client with a new server.
        new_client: Impact on a new client with an old server.
        old: Short description of the old state; empty for an addition.
        new: Short description of the new state; empty for a removal.
        reaches: Affected messages.
        hint: Recommended action.
        gate: Declaration or request that must come first and makes the change safe, such as a capability.
        definition_old: Changed definition of the old revision, if any.
        definition_new: Changed definition of the new revision, if any.
        witness: Value that proves it.
        unwitnessed: Reason for the absence of a witness, for a finding on the wire.
        area: The part of the protocol.
        cause: Fingerprint of the change that it shares with findings in other places; empty for a single place.
        places: The findings of each place, if it sums them up.
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
    definition_old: OrNull = ""
    definition_new: OrNull = ""
    witness: Witness | None = None
    unwitnessed: OrNull = ""
    gate: OrNull = ""
    area: Area = Area.MEMBERS
    cause: OrNull = ""
    places: tuple[Finding, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def severity(self) -> Severity:
        """Severity of the worse pairing."""
        worst = max(self.old_client, self.new_client)
        if worst is Impact.BREAKS:
            return Severity.BREAKING
        return Severity.RISKY if worst is Impact.RISKY else Severity.INFO

    @computed_field(json_schema_extra={"pattern": "^[0-9a-f]{16}$"})  # type: ignore[prop-decorator]
    @cached_property
    def fingerprint(self) -> str:
        """Stable id of the change, independent of texts: 16 hexadecimal digits."""
        if self.places:
            return self.cause
        return sha256("\0".join((self.rule, self.subject, self.old, self.new)).encode()).hexdigest()[:16]

    @property
    def fingerprints(self) -> frozenset[str]:
        """The fingerprints that name the finding in a file of acceptances: its own, and the one of its cause."""
        return frozenset({self.fingerprint, self.cause or self.fingerprint})


@dataclass(frozen=True)
class Verdict:
    """Verdict on a pairing.

    Attributes:
        outcome: Compatibility of the two sides.
        reasons: Causes of incompatibility, in short sentences.
    """

    outcome: Outcome
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Comparison of two revisions.

    Attributes:
        old: The old revision.
        new: The new revision.
        old_client: Verdict on an old client with a new server.
        new_client: Verdict on a new client with an old server.
        findings: Changes, one for each place: by severity, area and cause. `grouping.grouped` sums up the places.
        commits: Commits between the two revisions, oldest first, if known.
    """

    old: Protocol
    new: Protocol
    old_client: Verdict
    new_client: Verdict
    findings: tuple[Finding, ...]
    commits: tuple[Commit, ...] = ()

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """How broken rules of the schemas were handled; for commits, only newly broken rules."""
        before, after = self.old.diagnostics, self.new.diagnostics
        if self.commits:
            return tuple(diagnostic for diagnostic in after if diagnostic not in before)
        return tuple(dict.fromkeys(before + after))

    @property
    def compares_words(self) -> bool:
        """True if descriptions and deprecations were compared; ours are not compared with those of external files."""
        return self.old.origin == self.new.origin


@dataclass(frozen=True)
class Skipped:
    """Commit with an unreadable version of the file.

    Attributes:
        commit: The commit.
        reason: Why the version cannot be read.
    """

    commit: Commit
    reason: str


@dataclass(frozen=True)
class Walked:
    """Summary of a walk through commits.

    Attributes:
        source: The file and the range, as the user named them.
        commits: Number of commits that changed the file.
        same: Number of commits that changed only prose or layout.
        skipped: Commits with an unreadable version; the next version is compared with the last readable one.
    """

    source: str
    commits: int
    same: int
    skipped: tuple[Skipped, ...]


# --- rules ------------------------------------------------------------------------------------------------------------


Impacts = tuple[Impact, Impact]
"""Impact on an old client with a new server, and on a new client with an old server."""

_NONE = Impact.NONE


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
        is_certain: True if the change breaks every message of its kind.
    """

    id: str
    mirror: str
    client: Impacts
    server: Impacts
    says: str
    hint: str
    plane: Plane = Plane.WIRE
    is_certain: bool = False


def _rule(id: str, table: Mapping[str, Any]) -> Rule:
    def impacts_of(side: str) -> Impacts:
        old_client, new_client = (Impact[word.upper()] for word in table.get(side, ("none", "none")))
        return old_client, new_client

    sides = {side: impacts_of(side) for side in ("client", "server")}
    stated: dict[str, Any] = {"mirror": id, **table, **sides, "plane": Plane(table.get("plane", Plane.WIRE))}
    return Rule(id, **stated)


RULES = {id: _rule(id, table) for id, table in read_toml(Path(__file__).with_name("rules.toml")).items()}
"""Rule id -> rule."""


def impacts(rules: Iterable[str], senders: Iterable[Sender]) -> Impacts:
    """Return the worst impacts of all `rules` in the messages of `senders`."""
    both = tuple(senders)
    cells = [RULES[rule].client if sender == "client" else RULES[rule].server for rule in rules for sender in both]
    return (
        max((cell[0] for cell in cells), default=_NONE),
        max((cell[1] for cell in cells), default=_NONE),
    )
