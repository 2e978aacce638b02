"""Describe a step: the conversion of payloads from one revision to the next one, or back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

from mcp_bindgen.runtime.protocol.errors import INTERNAL_ERROR, ProtocolError

_QUOTED = re.compile(rb'"[^"]*"')

Part: TypeAlias = Literal["params", "results"]
"""The part of a method that is converted: the params of a request or notification, or what answers a request."""


class NotConvertible(ProtocolError):
    """A payload says something that the other revision has no words for.

    Attributes:
        place: The definition or the member of one that has no counterpart.
        reason: Why, and since or until which revision.
        capability: The dotted capability, with its owner, that nobody in the other revision can have, if that is why.
    """

    def __init__(self, place: str, reason: str, capability: str | None = None) -> None:
        super().__init__(INTERNAL_ERROR, f"{place}: {reason}")
        self.place = place
        self.reason = reason
        self.capability = capability


class Notes:
    """Collects what conversions lose, each place and reason once.

    Args:
        tell: Takes a place and a reason when they come for the first time.

    Attributes:
        told: The places and reasons so far, in the order in which they came.
    """

    def __init__(self, tell: Callable[[str, str], None] | None = None) -> None:
        self.told: dict[tuple[str, str], None] = {}
        self._tell = tell

    def lost(self, place: str, reason: str) -> None:
        """Note that something is not said in the other revision, or in other words."""
        if (place, reason) not in self.told:
            self.told[place, reason] = None
            if self._tell is not None:
                self._tell(place, reason)


Convert: TypeAlias = Callable[[Any, Notes], Any]
"""Takes a JSON value, which it may edit in place, and returns it converted; raises `NotConvertible`."""


@dataclass(frozen=True)
class Conversion:
    """The conversion of one payload.

    Attributes:
        convert: What does it. Applied to what is converted already, it changes nothing.
        guard: JSON text, as compact as we write it, that holds none of these needs no conversion; empty: it always may.
    """

    convert: Convert
    guard: tuple[bytes, ...] = ()

    def fires(self, data: bytes) -> bool:
        """Tell whether a payload may need conversion, by its JSON text as we write it: compact, nothing escaped."""
        return not self.guard or any(needle in data for needle in self.guard)

    def fires_in_any(self, data: bytes) -> bool:
        """Tell the same of text that somebody else wrote, with spaces and escapes as they like."""
        return b"\\" in data or any(all(word in data for word in words) for words in self._words)

    @cached_property
    def _words(self) -> tuple[tuple[bytes, ...], ...]:
        """The words of each piece of the guard, which do not depend on spaces; all text has what is empty."""
        return tuple(tuple(_QUOTED.findall(needle)) for needle in self.guard or (b"",))


@dataclass(frozen=True)
class Remark:
    """Something that does not arrive as it was said.

    Attributes:
        part: Where it is said; `method` if all of it.
        kind: `lost`: it arrives with less, or in other words; `refused`: it is an error at the call.
        place: The definition or the member of one.
        reason: Why, in words.
    """

    part: Part | Literal["method"]
    kind: Literal["lost", "refused"]
    place: str
    reason: str


@dataclass(frozen=True)
class Step:
    """The conversions from one revision to an adjacent one.

    Where a message has no params, `{}` stands for them.

    Attributes:
        source: The revision of what goes in.
        target: The revision of what comes out.
        params: Method -> the conversion of its params; a method without a row keeps them as they are.
        results: Method -> the conversion of what answers it, likewise.
        absent: Method of the source that the target does not have -> the reason in words.
        unsent: Sender -> method that the target lets only the other side send -> the reason in words.
        adapted: Those of both for which whoever speaks the era of the target does something else.
        errors: Method -> code -> what the target has in its place; the method `*` stands for all others.
        claims: Method -> members that the source leaves open and the target types: a valid payload of the source may
            hold anything there. For `params` and `results` each.
        remarks: Method -> what of its payloads is lost or refused.
    """

    source: str
    target: str
    params: Mapping[str, Conversion] = field(default_factory=dict[str, Conversion])
    results: Mapping[str, Conversion] = field(default_factory=dict[str, Conversion])
    absent: Mapping[str, str] = field(default_factory=dict[str, str])
    unsent: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    adapted: frozenset[str] = frozenset()
    errors: Mapping[str, Mapping[int, int]] = field(default_factory=dict[str, Mapping[int, int]])
    claims: Mapping[Part, Mapping[str, frozenset[str]]] = field(
        default_factory=dict[Part, Mapping[str, frozenset[str]]]
    )
    remarks: Mapping[str, tuple[Remark, ...]] = field(default_factory=dict[str, tuple[Remark, ...]])
