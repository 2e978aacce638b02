"""Put plans into words: what a step converts, loses and refuses, and which rules are still to be written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mcp_bindgen.spec.toml import quoted

from .places import Kind, Place, Plan

_TITLES = {
    "converted": "Converted",
    "lost": "Arrives with less, or in other words",
    "refused": "Refused",
    "adapter": "Done otherwise by who speaks the revision",
    "filled": "Filled in, or left out",
    "open": "Ignored",
    "claim": "Dropped where it is something else than the target takes",
}
"""Maps what becomes of a place to the title of all that it becomes of, in the order in which they are told."""

_ACTIONS = {
    "refuse": "refused",
    "drop": "filled",
    "keep": "open",
    "adapter": "adapter",
    "give": "filled",
    "rename": "converted",
    "same_as": "converted",
}

_BARE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


@dataclass(frozen=True)
class Section:
    """Tell what becomes of some places.

    Attributes:
        title: What.
        entries: The names of places, and why; the reason is empty where the title says all.
    """

    title: str
    entries: tuple[tuple[tuple[str, ...], str], ...]


def sections(plan: Plan) -> Iterator[Section]:
    """Return what becomes of the places of a step, those with the same reason together."""
    found: dict[str, dict[str, list[str]]] = {fate: {} for fate in _TITLES}
    for place in plan.places:
        fate = _fate(place)
        reason = "" if fate in ("open", "claim") and place.rule is None else place.reason
        names = found[fate].setdefault("" if fate == "filled" and place.rule is None else reason, [])
        if place.name not in names:
            names.append(place.name)
    for fate, entries in found.items():
        if entries:
            yield Section(_TITLES[fate], tuple((tuple(names), reason) for reason, names in entries.items()))


def _fate(place: Place) -> str:
    rule = place.rule
    if rule is None:
        return {Kind.OPEN: "open", Kind.FILL: "filled", Kind.CLAIM: "claim", Kind.HARD: "refused"}[place.kind]
    if rule.action == "by":
        return "converted" if rule.lossless else "lost"
    return _ACTIONS[rule.action]


def step_words(plan: Plan) -> Iterator[str]:
    """Return the words of a step, line by line."""
    for section in sections(plan):
        yield section.title
        for names, reason in section.entries:
            yield f"  {', '.join(names)}{f': {reason}' if reason else ''}"


def missing_rules(plan: Plan) -> str:
    """Return the rules that a step lacks, as TOML to paste, complete and to be changed; empty where none is missing."""
    lines = [f'{_key(place.path)} = {{ do = "refuse", because = {quoted(place.words)} }}' for place in plan.missing]
    return "\n".join([f"[{quoted(plan.name)}]", *lines, ""]) if lines else ""


def _key(path: Iterable[str]) -> str:
    """Return a path as a key of TOML."""
    return ".".join(part if part and _BARE.issuperset(part) else quoted(part) for part in path)


_INTRODUCTION = """\
# Bridges

A server or client is written for one revision and speaks all of them: what a peer of another revision says and hears is
converted, a step from each revision to the next one at a time. This page is made of the schemas and of
`schema/bridges.toml`, which has the reasons (`mcp-bindgen generate`). Params and results that no step mentions pass as
they are.

Places are named as in the schemas: a definition and a member, and where the member is one of several types, which one;
`[]` is an array. Methods and errors go by their names.

- *Converted* says the same in other words; what *arrives with less* is logged, once for each connection.
- *Refused* is a typed error at the call, before anything is sent, and from a tool a result with `isError`; a
  notification is not sent.
- *Done otherwise*: the connection does in its own way what the method is for, or knows what the member says.
- *Filled in, or left out* follows from `schema/semantics.toml` where no reason stands beside it.
- *Ignored* members stay where they are: the schemas let everybody add members, and readers skip what they do not know.
  So do `_meta` and whatever else neither revision names.
- *Dropped* are members whose names mean nothing to the sender, and only if they do not fit.

`mcp-bindgen bridges` shows the same, and `mcp-bindgen bridges MODULE:CLASS` says what peers of each revision will miss
of what a class of yours offers.

How a rule is written stands at the top of `schema/bridges.toml`; for revisions that you imported yourself, rules go
into `schema/bridges.toml` of your own folder (`mcp-bindgen bridges --missing` prints those that are needed). Without a
rule, what only a rule could convert is refused. A rule may name a function of `mcp_bindgen.bridging.rules`: it gets the
JSON value, returns it converted, and changes nothing when it gets that again.
"""


def page(plans: Iterable[Plan]) -> str:
    """Return `docs/bridges.md`."""
    return "\n".join([_INTRODUCTION, *(_chapter(plan) for plan in plans)])


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
    said = ", ".join(f"`{name}`" for name in names)
    return f"- {said}: {reason}" if reason else f"- {said}"
