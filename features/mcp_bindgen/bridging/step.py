"""Data of a step: the conversion of payloads from one revision to an adjacent revision."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NoReturn, TypeAlias

from mcp_bindgen.runtime.protocol.errors import INTERNAL_ERROR, ProtocolError

_QUOTED = re.compile(rb'"[^"]*"')

Part: TypeAlias = Literal["params", "results"]
"""Part of a method that is converted: the params of a message, or the results of a request."""


class NotConvertible(ProtocolError):
    """A payload that the other revision cannot express.

    Attributes:
        place: The definition, or the member of a definition, that has no counterpart.
        reason: The reason, with the revision that adds or removes it.
        capability: The dotted capability, with its owner, that no peer of the other revision can have, or None.
    """

    def __init__(self, place: str, reason: str, capability: str | None = None) -> None:
        super().__init__(INTERNAL_ERROR, f"{place}: {reason}")
        self.place = place
        self.reason = reason
        self.capability = capability


class LossReport:
    """Losses of conversions; each place and reason is recorded once.

    Args:
        tell: Called with a place and a reason when they are recorded for the first time.

    Attributes:
        losses: The places and reasons, in the order in which they were recorded.
    """

    def __init__(self, tell: Callable[[str, str], None] | None = None) -> None:
        self.losses: dict[tuple[str, str], None] = {}
        self._tell = tell

    def record(self, place: str, reason: str) -> None:
        """Record that a value is left out, or said in other words."""
        if (place, reason) not in self.losses:
            self.losses[place, reason] = None
            if self._tell is not None:
                self._tell(place, reason)


Convert: TypeAlias = Callable[[Any, LossReport], Any]
"""Takes a JSON value, which it may edit in place, and returns the converted value; raises `NotConvertible`."""


@dataclass(frozen=True)
class Conversion:
    """Conversion of one payload.

    Attributes:
        convert: The function. It leaves a value unchanged that is converted already.
        prefilter: Pieces of compact JSON text. A payload that holds none of them needs no conversion; without pieces,
            any payload may need it.
    """

    convert: Convert
    prefilter: tuple[bytes, ...] = ()

    def may_apply(self, data: bytes) -> bool:
        """Return True if a payload may need conversion, given its compact JSON text without escapes."""
        return not self.prefilter or any(piece in data for piece in self.prefilter)

    def may_apply_to_any(self, data: bytes) -> bool:
        """Return True if a payload may need conversion, given JSON text with any spaces and escapes."""
        return b"\\" in data or any(all(word in data for word in words) for words in self._words)

    @cached_property
    def _words(self) -> tuple[tuple[bytes, ...], ...]:
        """The quoted words of each piece of the prefilter; they do not depend on spaces."""
        return tuple(tuple(_QUOTED.findall(piece)) for piece in self.prefilter or (b"",))


@dataclass(frozen=True)
class Remark:
    """Part of a payload that is lost or refused.

    Attributes:
        part: The part of the method; `method` for the whole message.
        kind: `lost` if the payload arrives with less or in other words, `refused` if the call fails.
        place: The definition, or the member of a definition.
        reason: The reason in words.
    """

    part: Part | Literal["method"]
    kind: Literal["lost", "refused"]
    place: str
    reason: str


@dataclass(frozen=True)
class Ruling:
    """Statement of a rule about a place.

    Attributes:
        place: A definition and a member, or an alternative of a union there.
        reason: The reason for the conversion or refusal.
        capability: The dotted capability, with its owner, that no peer of the target can have, or None.
    """

    place: str
    reason: str
    capability: str | None = None

    def lost(self, part: Part) -> Remark:
        """Return the remark that a value is lost here."""
        return Remark(part, "lost", self.place, self.reason)

    def refused(self, part: Part) -> Remark:
        """Return the remark that a value is refused here."""
        return Remark(part, "refused", self.place, self.reason)


@dataclass(frozen=True)
class RuleContext:
    """Context of a function that a rule names."""

    ruling: Ruling
    losses: LossReport

    def record_loss(self) -> None:
        """Record that the value arrives with less, or in other words."""
        self.losses.record(self.ruling.place, self.ruling.reason)

    def refuse(self) -> NoReturn:
        """Refuse the payload; raises `NotConvertible`."""
        raise NotConvertible(self.ruling.place, self.ruling.reason, self.ruling.capability)


@dataclass(frozen=True)
class Step:
    """Conversions from one revision to an adjacent revision. Missing params count as `{}`.

    Attributes:
        source: The revision of the input.
        target: The revision of the output.
        params: Method -> conversion of its params; a method without a row keeps them.
        results: Method -> conversion of its results; a method without a row keeps them.
        absent: Method of the source that the target does not have -> reason.
        unsent: Sender -> method that only the other side may send in the target -> reason.
        adapted: Methods of `absent` and `unsent` that an `EraAdapter` replaces.
        errors: Method -> error code of the source -> code of the target; `*` stands for all other methods.
        field_collisions: Part -> method -> members that the source leaves open and the target types. A valid payload
            of the source may hold any value there.
        remarks: Method -> parts of its payloads that are lost or refused.
    """

    source: str
    target: str
    params: Mapping[str, Conversion] = field(default_factory=dict[str, Conversion])
    results: Mapping[str, Conversion] = field(default_factory=dict[str, Conversion])
    absent: Mapping[str, str] = field(default_factory=dict[str, str])
    unsent: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    adapted: frozenset[str] = frozenset()
    errors: Mapping[str, Mapping[int, int]] = field(default_factory=dict[str, Mapping[int, int]])
    field_collisions: Mapping[Part, Mapping[str, frozenset[str]]] = field(
        default_factory=dict[Part, Mapping[str, frozenset[str]]]
    )
    remarks: Mapping[str, tuple[Remark, ...]] = field(default_factory=dict[str, tuple[Remark, ...]])
