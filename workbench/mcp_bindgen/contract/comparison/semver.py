"""Compute the version that Semantic Versioning 2.0.0 demands after changes of a contract."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from mcp_bindgen.drift.changes import Verdict
from mcp_bindgen.spec import BadInput

from .compare import ContractComparison

_NUMBER = r"(?:0|[1-9]\d*)"
_IDENTIFIERS = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION = re.compile(
    rf"(?P<core>{_NUMBER}\.{_NUMBER}\.{_NUMBER})(?:-(?P<before>{_IDENTIFIERS}))?(?:\+{_IDENTIFIERS})?"
)


class Part(IntEnum):
    """Part of a version that must grow."""

    NONE = 0
    """Nothing changed."""
    PATCH = 1
    """Only texts and notation changed."""
    MINOR = 2
    """Something was added, or it is not proven that callers work."""
    MAJOR = 3
    """Callers break."""


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


_PARTS = {Verdict.NOTATION: Part.PATCH, Verdict.COMPATIBLE: Part.MINOR, Verdict.UNPROVEN: Part.MINOR}
"""Verdict below breaking -> the part that must grow."""


def decisive(comparison: ContractComparison) -> Reason:
    """Return the part that must grow between two contracts, with the finding that decides."""
    return max(_reasons(comparison), key=lambda one: one.part, default=Reason(Part.NONE, "", "nothing changed"))


def _reasons(comparison: ContractComparison) -> Iterator[Reason]:
    for one in comparison.findings:
        if one.kind != "server":
            yield Reason(_PARTS.get(one.verdict, Part.MAJOR), one.rule, one.sentence)
    for change in comparison.texts:
        yield Reason(
            Part.PATCH, "text-changed", f"{change.kind} {change.name}".rstrip() + f": {change.texts[0][0]} changed"
        )
