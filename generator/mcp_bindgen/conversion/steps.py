"""Adjacent revisions, and the steps between them in both directions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from mcp_bindgen.ir import build
from mcp_bindgen.spec import Store
from mcp_bindgen.spec.errors import locating
from mcp_bindgen.spec.json import is_array
from mcp_bindgen.spec.revisions import order

from .differences import Plan
from .plan import plan
from .rules import Rules, read_rules

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
