"""Group findings by cause: equal changes in many places are one finding, which lists the places."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import chain

from .finding import Area, Finding, Impact, Message, Plane
from .messages import OPENINGS

_STEP = re.compile(r'(.+?)((?:\.\w+|\["[^"]*"\]|\|[^|]+)(?:\[\]|\{\})*)')
"""A subject: its owner, and the last step."""

_MESSAGE = re.compile(r"((?:client|server)->\w+) (request|notification) ([^\s|]+)")
"""The subject of a message: direction, kind and method."""

_ALONE = ("definition-", "extension-", "error-")
"""Rules about single names."""


def arranged(
    findings: Iterable[Finding], requests: Collection[Message], depth: Callable[[Finding], int]
) -> tuple[Finding, ...]:
    """Return findings with their causes and areas in the order of reports: the worst first, then the lifecycle.

    Args:
        findings: The findings, one for each place.
        requests: The requests that clients of both revisions send; a change of all of them belongs to the lifecycle.
        depth: Returns the number of references between a message and a finding: direct uses come first.
    """
    groups = _merged(_merged([[one] for one in findings], _by_change), _by_places)

    def rank(finding: Finding) -> tuple[object, ...]:
        impacts = -finding.old_client, -finding.new_client
        return depth(finding), *impacts, finding.subject, finding.rule, finding.old, finding.new

    def group_rank(group: Sequence[Finding]) -> tuple[object, ...]:
        first = group[0]
        is_new = first.area is Area.METHODS and first.rule.endswith("-added")
        return -first.severity, list(Plane).index(first.plane), list(Area).index(first.area), is_new, *rank(first)

    ordered = [
        [replace(one, area=area, cause=cause) for one in sorted(group, key=rank)]
        for group in groups
        for area, cause in [(_area(group, requests), _cause(group))]
    ]
    ordered.sort(key=group_rank)
    return tuple(chain.from_iterable(ordered))


def grouped(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return one finding for each cause, in the order of the first ones; `places` has the findings of each place."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.cause or finding.fingerprint, []).append(finding)
    return tuple(_whole(group) if len(group) > 1 else group[0] for group in found.values())


def hint_of(*gates: str) -> str:
    """Return what to do about variants and messages with gates; empty without a gate."""
    names = [f"`{gate}`" for gate in gates if "." in gate]
    if names:
        return f"Safe unless the other side declares {' or '.join(names)}, which a side without it never does."
    return "Comes only where the params ask for it: ask only a side that has it." if any(gates) else ""


def owners(finding: Finding) -> tuple[str, ...]:
    """Return the definitions or messages with the changed member that the subject of a group does not name."""
    found = dict.fromkeys(_split(one)[0] for one in finding.places)
    return tuple(found) if finding.subject.startswith("*") or finding.subject.endswith(" more") else ()


def _merged(groups: Iterable[list[Finding]], key: Callable[[Sequence[Finding]], Hashable]) -> list[list[Finding]]:
    found: dict[Hashable, list[Finding]] = {}
    for group in groups:
        found.setdefault(key(group), []).extend(group)
    return list(found.values())


def _by_change(group: Sequence[Finding]) -> Hashable:
    """Return what equal changes share: rule, verdict, and the changed member or the family of methods."""
    one = group[0]
    if one.rule.startswith(_ALONE):
        return one.fingerprint
    message = _MESSAGE.fullmatch(one.subject)
    if message is not None and one.plane is Plane.WIRE:
        first, *rest = message[3].split("/")
        family = (first, *rest[:1]) if first == "notifications" else first
        return one.rule, one.severity, (one.old, one.new) if one.rule == "message-carrier-changed" else family
    return one.rule, one.plane, _verdict(one), _split(one)[1], one.old, one.new


def _by_places(group: Sequence[Finding]) -> Hashable:
    """Return what changes of the same places share: rule, verdict and places."""
    first, owners = group[0], frozenset(_split(one)[0] for one in group)
    return first.rule, first.plane, _verdict(first), owners, bool(_split(first)[1])


def _verdict(finding: Finding) -> Hashable:
    """Return the effects on both pairings; variants that messages of both sides gain or lose have one cause."""
    if finding.rule.startswith("union-member-"):
        return finding.severity
    return tuple(max(impact, Impact.IGNORED) for impact in (finding.old_client, finding.new_client))


def _split(finding: Finding) -> tuple[str, str]:
    """Return the owner and the last step of a subject; the step is empty for a definition, a message, a deprecation."""
    parts = _STEP.fullmatch(finding.subject) if "deprecated" not in finding.rule else None
    return (parts[1], parts[2]) if parts is not None else (finding.subject, "")


def _area(group: Sequence[Finding], requests: Collection[Message]) -> Area:
    reached = {message for one in group for message in one.reaches}
    is_everywhere = len(requests) > 1 and reached.issuperset(requests)
    if group[0].group == "errors":
        return Area.ERRORS
    if is_everywhere or not reached or any(one.group in OPENINGS for one in group):
        return Area.LIFECYCLE
    return Area.METHODS if _MESSAGE.fullmatch(group[0].subject) else Area.MEMBERS


def _cause(group: Sequence[Finding]) -> str:
    """Return the fingerprint of a group; a change of its places changes it. Empty for a single finding."""
    prints = sorted(one.fingerprint for one in group)
    return sha256("\0".join(prints).encode()).hexdigest()[:16] if len(prints) > 1 else ""


def _whole(group: Sequence[Finding]) -> Finding:
    gated = [one for one in group if one.hint == hint_of(one.gate)]
    hints = [*(one.hint for one in group if one not in gated), hint_of(*dict.fromkeys(one.gate for one in gated))]
    return replace(
        group[0],
        subject=_title(group),
        old_client=max(one.old_client for one in group),
        new_client=max(one.new_client for one in group),
        old=", ".join(dict.fromkeys(one.old for one in group)),
        new=", ".join(dict.fromkeys(one.new for one in group)),
        reaches=tuple(sorted({message for one in group for message in one.reaches})),
        hint=" ".join(filter(None, dict.fromkeys(hints))),
        gate=group[0].gate if len({one.gate for one in group}) == 1 else "",
        places=tuple(group),
    )


def _title(group: Sequence[Finding]) -> str:
    """Return the subject of a group: `*.ttlMs`, `Tool.(icons, title)` or `client<->server request ping`."""
    messages = [match for one in group if (match := _MESSAGE.fullmatch(one.subject))]
    if len(messages) == len(group) and group[0].plane is Plane.WIRE:
        ways = {match[1] for match in messages}
        names = _either([match[3] for match in messages])
        return f"{ways.pop() if len(ways) == 1 else 'client<->server'} {messages[0][2]} {names}"
    homes, steps = zip(*map(_split, group), strict=True)
    more = len(set(homes)) - 1
    if steps[0]:
        return ("*" if more else homes[0]) + _either(steps)
    return f"{homes[0]} and {more} more" if more else homes[0]


def _either(names: Sequence[str]) -> str:
    """Return names with their common start and end once: `.(icons, title)`, `tasks/(get, list)`."""
    if len(set(names)) == 1:
        return names[0]
    starts = [names[0][: end.end()] for end in re.finditer("[/.|]", names[0])]
    shared = max((start for start in starts if all(name.startswith(start) for name in names)), key=len, default="")
    end = '"]' if all(name.endswith('"]') for name in names) and '["' in shared else ""
    inside = dict.fromkeys(name.removeprefix(shared).removesuffix(end) for name in names)
    return f"{shared}({', '.join(inside)}){end}"
