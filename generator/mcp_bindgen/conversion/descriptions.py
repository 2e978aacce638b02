"""Describe plans: the conversions, losses and refusals of a step, and the rules that it lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mcp_bindgen.spec.markdown import code_span
from mcp_bindgen.spec.toml import read_toml

from .differences import Difference, Kind, Plan

_WORDS = read_toml(Path(__file__).with_suffix(".toml"))
_TITLES: Mapping[str, str] = _WORDS["titles"]


@dataclass(frozen=True)
class Section:
    """Differences with the same outcome.

    Attributes:
        title: The outcome.
        entries: Paths of differences, and the reason; empty if the title is enough.
    """

    title: str
    entries: tuple[tuple[tuple[str, ...], str], ...]


def sections(plan: Plan) -> Iterator[Section]:
    """Yield the outcomes of the differences of a step, grouped by reason."""
    found: dict[str, dict[str, list[str]]] = {fate: {} for fate in _TITLES}
    for difference in plan.differences:
        fate = "refused" if difference.rule is None and difference in plan.gone else _fate(difference)
        reason = "" if fate in ("ignored", "type-conflict") and difference.rule is None else difference.reason
        names = found[fate].setdefault("" if fate == "filled" and difference.rule is None else reason, [])
        if difference.name not in names:
            names.append(difference.name)
    for fate, entries in found.items():
        if entries:
            yield Section(_TITLES[fate], tuple((tuple(names), reason) for reason, names in entries.items()))


def _fate(difference: Difference) -> str:
    rule = difference.rule
    if rule is None:
        return {Kind.FILL: "filled", Kind.NEEDS_RULE: "refused"}.get(difference.kind, difference.kind.value)
    is_lossy = rule.action in ("by", "merge") and rule.may_lose
    return "lost" if is_lossy else str(_WORDS["actions"][rule.action])


_INTRODUCTION = Path(__file__).with_name("introduction.md")
"""The beginning of the page about all conversions."""


def page(plans: Iterable[Plan]) -> str:
    """Return `docs/explanation/bridges.md`."""
    return "\n".join([_INTRODUCTION.read_text("utf-8"), *(_chapter(plan) for plan in plans)])


def _chapter(plan: Plan) -> str:
    lines = [f"## {plan.source.revision} to {plan.target.revision}", ""]
    found = list(sections(plan))
    if not found:
        lines += ["Nothing changes.", ""]
    for section in found:
        lines += [f"**{section.title}**", ""]
        lines += [_entry(names, reason) for names, reason in section.entries]
        lines.append("")
    return "\n".join(lines)


def _entry(names: Iterable[str], reason: str) -> str:
    listed = ", ".join(map(code_span, names))
    return f"- {listed}: {reason}" if reason else f"- {listed}"
