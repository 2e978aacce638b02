"""Decide which revisions are adjacent, and plan the steps between them, both ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

from mcp_bindgen.protocol import Protocol, build
from mcp_bindgen.spec import Store
from mcp_bindgen.spec.revisions import order

from .places import Plan
from .plan import plan
from .rules import Path as RulePath
from .rules import Rule, Rules, read_rules

FILE = "bridges.toml"
"""The file with the rules, in the folder of the schemas, ours or the user's."""


def pairs(store: Store, *, users: bool | str = False) -> Iterator[tuple[str, str]]:
    """Return adjacent revisions, the older one first.

    Those of the installation are a row, by date. Those in the user's folder branch off it, so that the steps between
    ours stay the same whatever somebody imports.

    Args:
        store: The revisions.
        users: Whether to return the pairs of the user's revisions, or of one of them, instead of those of the
            installation.
    """
    ours = [name for name in store.pins if not store.is_users(name)]
    if not users:
        yield from pairwise(ours)
        return
    for name in store.pins:
        if store.is_users(name) and users in (True, name):
            older = [other for other in ours if order(other) < order(name)]
            yield (older[-1], name) if older else (name, ours[0])


def plans(store: Store, *, users: bool | str = False) -> list[Plan]:
    """Plan the steps between adjacent revisions, up and down.

    Args: as `pairs`.

    Raises:
        BadInput: A schema breaks a convention, or a file of rules says something that no plan would read.
    """
    adjacent = list(pairs(store, users=users))
    rules = read_rules(rule_file(store, users=bool(users)))
    protocol = cache(partial(_protocol, store))
    return [
        plan(
            protocol(source),
            protocol(target),
            {**_renamed_back(rules, source, target), **rules.get((source, target), {})},
        )
        for older, newer in adjacent
        for source, target in ((older, newer), (newer, older))
    ]


def _renamed_back(rules: Mapping[tuple[str, str], Rules], source: str, target: str) -> Rules:
    """Return the rules that follow from the way back: what got another name there gets its old one."""
    found: dict[RulePath, Rule] = {}
    for path, rule in rules.get((target, source), {}).items():
        if rule.action == "rename":
            back = (*path[:-1], rule.value)
            found[back] = replace(rule, value=path[-1], path=back)
    return found


def rule_file(store: Store, *, users: bool = False) -> Path:
    """Return the file in which the rules of steps stand, the installation's or the user's; it need not be there."""
    return (store.users or store.root if users else store.root) / FILE


def _protocol(store: Store, revision: str) -> Protocol:
    return build(store.effective(revision))
