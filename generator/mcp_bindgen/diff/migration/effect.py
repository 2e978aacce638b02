"""What happens to something that code uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..finding import Finding
from ..rules import RULES

Kind = Literal["gone", "renamed", "changed", "needed"]


@dataclass(frozen=True)
class Effect:
    """What happened to a name, a field, a handler or a call.

    Attributes:
        kind: What, in a word; `needed` is something that must be given now.
        rule: The rule of the change behind it.
        subject: What that change is about.
        old: What it was in Python, in a few words.
        new: What it is; empty for what is gone.
        hint: What to do about it.
        fingerprint: The fingerprint of the finding; empty where the comparison has none of its own for it.
    """

    kind: Kind
    rule: str
    subject: str
    old: str
    new: str
    hint: str
    fingerprint: str = ""


def effect(kind: Kind, cause: Finding | None, rule: str, subject: str, old: str, new: str) -> Effect:
    """An effect of `cause`; `rule` and `subject` stand in where nothing is known of a cause."""
    if cause is None:
        return Effect(kind, rule, subject, old, new, RULES[rule].hint)
    hint = RULES[cause.rule].hint if cause.gate else cause.hint  # code uses it, so it does matter
    return Effect(kind, cause.rule, cause.subject, old, new, hint, cause.fingerprint)
