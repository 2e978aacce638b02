"""Compute the version that Semantic Versioning 2.0.0 demands after changes of a contract."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from mcp_bindgen.lock.document import LockedServer, Snapshot
from mcp_bindgen.lock.verdict import LockStatus
from mcp_bindgen.spec import BadInput

from ..model import Contract
from .compare import compare_contracts
from .drift import check_server
from .verdicts import Level

_NUMBER = r"(?:0|[1-9]\d*)"
_IDENTIFIERS = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION = re.compile(
    rf"(?P<core>{_NUMBER}\.{_NUMBER}\.{_NUMBER})(?:-(?P<before>{_IDENTIFIERS}))?(?:\+{_IDENTIFIERS})?"
)
_NEEDS_SCOPE = "scope-added"


class Part(IntEnum):
    """Part of a version that must grow."""

    NONE = 0
    """Nothing changed."""
    PATCH = 1
    """Only texts changed."""
    MINOR = 2
    """Something was added, or a hint or default changed."""
    MAJOR = 3
    """Clients break, or it is not proven that they work."""


@dataclass(frozen=True)
class Reason:
    """Reason for a part.

    Attributes:
        part: The part that must grow.
        rule: Rule of the finding.
        sentence: The change in one line.
    """

    part: Part
    rule: str
    sentence: str


@dataclass(frozen=True)
class Version:
    """Version of Semantic Versioning.

    Attributes:
        numbers: Major, minor and patch.
        is_final: False for a pre-release such as `1.0.0-rc.1`.
    """

    numbers: tuple[int, int, int]
    is_final: bool = True

    @classmethod
    def of(cls, text: str) -> Version:
        """Return a version; raise `BadInput` if the text is none."""
        match = _VERSION.fullmatch(text)
        if match is None:
            raise BadInput(f"{text!r} is no version of SemVer", fix="give --released MAJOR.MINOR.PATCH")
        major, minor, patch = map(int, match["core"].split("."))
        return cls((major, minor, patch), match["before"] is None)

    def bumped(self, part: Part) -> Version:
        """Return the lowest final version that follows; below 1.0.0, a break needs a new minor version only."""
        if part is Part.NONE:
            return self
        major, minor, patch = self.numbers
        if major == 0:
            part = Part(max(part - 1, Part.PATCH))
        if not self.is_final and not any(self.numbers[4 - part :]):
            return Version(self.numbers)  # the final version of the pre-release is large enough
        match part:
            case Part.MAJOR:
                return Version((major + 1, 0, 0))
            case Part.MINOR:
                return Version((major, minor + 1, 0))
            case _:
                return Version((major, minor, patch + self.is_final))

    def follows(self, other: Version) -> bool:
        """Return whether this version is the other one or a later one."""
        return (self.numbers, self.is_final) >= (other.numbers, other.is_final)

    def __str__(self) -> str:
        return ".".join(map(str, self.numbers))


def decisive(old: Contract, new: Contract) -> Reason:
    """Return the part that must grow between two contracts, with the finding that decides."""
    return max(_reasons(old, new), key=lambda one: one.part, default=Reason(Part.NONE, "", "nothing changed"))


def _reasons(old: Contract, new: Contract) -> Iterator[Reason]:
    for finding in compare_contracts(old, new).findings:
        part = Part.PATCH
        if finding.level is Level.BREAKING or finding.rule == _NEEDS_SCOPE:
            part = Part.MAJOR
        elif max(finding.level, finding.reverse) is not Level.SAFE:
            part = Part.MINOR
        yield Reason(part, finding.rule, finding.sentence)
    sides = (Snapshot.of(one.document) for one in (old, new))
    for one in check_server(LockedServer({}, next(sides)), next(sides)):
        if one.verdict.kind != "server" and one.verdict.status >= LockStatus.UNPROVEN:
            subject = f"{one.verdict.kind} {one.verdict.name}"
            yield Reason(Part.MAJOR, f"lock-{one.verdict.status.name.lower()}", f"{subject}: {one.verdict.reasons[0]}")
