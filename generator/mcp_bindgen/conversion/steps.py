"""Adjacent revisions, and the steps between them in both directions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from mcp_bindgen.ir import build
from mcp_bindgen.ir.model import Method, Object, Protocol
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.errors import locating
from mcp_bindgen.spec.json import is_array
from mcp_bindgen.spec.revisions import order

from .differences import Conversion, Difference, Kind, Payload, Plan, Side
from .edits import reach
from .payloads import Payloads
from .rules import ANY, ERROR, Rules, read_rules


def plan(source: Protocol, target: Protocol, rules: Rules) -> Plan:
    """Plan the step from `source` to `target`."""
    planner = Payloads(source, target, rules)
    theirs = {method.name: method for method in target.methods}
    payloads: list[Payload] = []
    gone: list[Difference] = []
    for method in source.methods:
        other = theirs.get(method.name)
        gone += _unsent(planner, method, other)
        rule = rules.get((method.name,))
        if other is None and rule is not None and rule.action == "rename":
            other = theirs.get(rule.value)
            if other is None or other.kind != method.kind:
                problem = f"the rule of {method.name} names no {method.kind} of MCP {target.revision}: {rule.value}"
                raise BadInput(problem, fix="name its counterpart")
        payloads += _payloads(planner, method, other) if other is not None else ()
    errors, changed = _errors(planner)
    differences = [*gone, *changed, *(one for payload in payloads for one in payload.differences)]
    reached = {one for payload in payloads for one in reach(payload.edit, planner.named)}
    return Plan(
        Side(source.revision, source.digest),
        Side(target.revision, target.digest),
        tuple(payloads),
        tuple(Conversion(key, edit) for key, edit in planner.named.items() if key in reached),
        tuple(gone),
        errors,
        tuple(dict.fromkeys(differences)),
        tuple(rule for path, rule in rules.items() if path not in planner.used),
    )


def _unsent(planner: Payloads, method: Method, other: Method | None) -> Iterator[Difference]:
    """Yield a difference for a method that the target lacks, or for each side that may not send it there."""
    target = planner.target.revision
    if other is None:
        yield planner.difference((method.name,), Kind.IGNORED, f"MCP {target} has no {method.name}")
        return
    for sender in method.senders:
        if sender not in other.senders:
            description = f"in MCP {target} no {sender} sends {method.name}"
            yield planner.difference((method.name, sender), Kind.IGNORED, description)


def _payloads(planner: Payloads, method: Method, other: Method) -> Iterator[Payload]:
    """Plan the params and the results of a method."""
    if method.params is not None or other.params is not None:
        none = Object(())
        found = planner.outcome(method.params or none, other.params or none, (method.name, "params"))
        yield Payload(method.name, "params", found.edit, found.differences)
    if method.answers and other.answers:
        found = planner.answers(method.answers, other.answers, (method.name, "result"))
        yield Payload(method.name, "results", found.edit, found.differences)


def _errors(planner: Payloads) -> tuple[dict[str, dict[int, int]], list[Difference]]:
    """Return the changes of error codes, and the errors that only one side has."""
    ours, theirs = ({one.name: one.code for one in side.errors} for side in (planner.source, planner.target))
    codes: dict[str, dict[int, int]] = {}
    differences: list[Difference] = []
    for name in sorted(ours.keys() ^ theirs.keys()):
        side = planner.target if name in ours else planner.source
        difference = planner.difference((ERROR, name), Kind.IGNORED, f"MCP {side.revision} has no error {name}")
        differences.append(difference)
        if difference.rule is not None and difference.rule.action == "same_as":
            same = difference.rule.value
            before, after = (ours[name], theirs[same]) if name in ours else (ours[same], theirs[name])
            for method in difference.rule.methods or (ANY,):
                codes.setdefault(method, {})[before] = after
    return codes, differences


FILE = "bridges.toml"
"""The file with the rules, in the folder of the schemas, ours or the user's."""


def pairs(store: Store, *, users: bool | str = False) -> Iterator[tuple[str, str]]:
    """Return adjacent revisions, the older one first.

    Revisions of the installation form a row, by date. A revision of the user branches off from it, if possible from
    one of its era, so that an import changes no step of the installation.

    Args:
        store: The revisions.
        users: True for the pairs of the user's revisions, or the name of one of these; False for those of the
            installation.
    """
    ours = [name for name in store.pins if not store.is_users(name)]
    if not users:
        yield from pairwise(ours)
        return
    for name in store.pins:
        if store.is_users(name) and users in (True, name):
            older = [other for other in reversed(ours) if order(other) < order(name)]
            of_its_era = (other for other in older if store.effective(other).era == store.effective(name).era)
            yield (next(of_its_era, older[0]), name) if older else (name, ours[0])


def plans(store: Store, *, users: bool | str = False, leaving: str | None = None) -> list[Plan]:
    """Plan the steps between adjacent revisions, up and down.

    Args:
        store: The revisions.
        users: As in `pairs`.
        leaving: The only source to plan steps from; all sources by default.

    Raises:
        BadInput: A schema breaks a convention, or a file of rules says something that no plan would read.
    """
    adjacent = list(pairs(store, users=users))
    file = rule_file(store, users=bool(users))
    rules = read_rules(file)
    found: list[Plan] = []
    for source, target in (step for pair in adjacent for step in (pair, pair[::-1])):
        if leaving in (None, source):
            ends = build(store.effective(source)), build(store.effective(target))
            with locating(file):
                found.append(plan(*ends, _of_step(rules, source, target)))
    return found


def rules_of(store: Store, source: str, target: str) -> Rules:
    """Return the rules of a step, of the installation and of the user, with those that follow from its opposite.

    Rules of the last step to a revision of the user count for earlier sources, too.
    """
    rules = read_rules(*dict.fromkeys(rule_file(store, users=users) for users in (False, True)))
    last = [older for older, newer in pairs(store, users=True) if newer == target]
    return {path: rule for one in (*last, source) for path, rule in _of_step(rules, one, target).items()}


def _of_step(rules: Mapping[tuple[str, str], Rules], source: str, target: str) -> Rules:
    """Return the rules of a step, and those that follow from its opposite; a rule of this step for a place wins."""
    own, opposite = rules.get((source, target), {}), rules.get((target, source), {})
    given = {path: rule.value for path, rule in opposite.items() if rule.action == "give" and is_array(rule.value)}
    moved = [rule.opposite() for rule in opposite.values() if rule.put or rule.action == "rename"]
    follow = (rule for rule in moved if rule.path[:2] not in own)
    return {**{rule.path: replace(rule, leave=tuple(given.get(rule.path[:2], ()))) for rule in follow}, **own}


def rule_file(store: Store, *, users: bool = False) -> Path:
    """Return the file in which the rules of steps stand, the installation's or the user's; it need not be there."""
    return (store.users or store.root if users else store.root) / FILE
