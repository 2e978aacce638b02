"""Compose steps: from any revision to any other, by the generated modules that are there."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Any

from mcp_bindgen.runtime.home import bindings_folder

from .step import Conversion, Notes, Part, Remark, Step

PACKAGE = f"{__name__.partition('.')[0]}.bridges"
"""The package whose modules are the steps: `v2025_06_18_to_v2025_11_25` and so on."""

_BETWEEN = "_to_v"


class Chain:
    """Steps in order, as one.

    Args:
        steps: Each begins where the one before ends; none is the identity.
    """

    def __init__(self, *steps: Step) -> None:
        self.steps = steps
        self._found: dict[tuple[Part, str], Conversion | None] = {}

    def params(self, method: str) -> Conversion | None:
        """Return the conversion of the params of a method; `None` where they stay as they are."""
        return self._conversion("params", method)

    def results(self, method: str) -> Conversion | None:
        """Return the conversion of what answers a method; `None` where it stays as it is."""
        return self._conversion("results", method)

    def absent(self, method: str, sender: str | None = None) -> str | None:
        """Return why a method of the first revision has no counterpart in the last; `None` where it has one.

        Args:
            method: The method.
            sender: Who sends it, `client` or `server`, where that matters: the other side may still send it.
        """
        gone = ({**step.absent, **step.unsent.get(sender or "", {})} for step in self.steps)
        return next((methods[method] for methods in gone if method in methods), None)

    def error(self, method: str, code: int) -> int:
        """Return the error code that says in the last revision what `code` says in the first."""
        for step in self.steps:
            code = step.errors.get(method, step.errors.get("*", {})).get(code, code)
        return code

    def claims(self, part: Part, method: str) -> frozenset[str]:
        """Return the members that one revision leaves open and a later one types."""
        return frozenset[str]().union(*(step.claims.get(part, {}).get(method, ()) for step in self.steps))

    def remarks(self, method: str) -> tuple[Remark, ...]:
        """Return what of the payloads of a method is lost or refused on the way, or that all of it is."""
        found: dict[Remark, None] = {}
        for step in self.steps:
            found |= dict.fromkeys(step.remarks.get(method, ()))
            for gone in (step.absent, *step.unsent.values()):
                if method in gone and method not in step.adapted:
                    found[Remark("method", "refused", method, gone[method])] = None
            if method in step.absent:
                break
        return tuple(found)

    def _conversion(self, part: Part, method: str) -> Conversion | None:
        key = (part, method)
        if key not in self._found:
            rows: Iterable[Mapping[str, Conversion]] = (
                step.params if part == "params" else step.results for step in self.steps
            )
            self._found[key] = _compose([row[method] for row in rows if method in row])
        return self._found[key]


def _compose(conversions: list[Conversion]) -> Conversion | None:
    """Return one conversion for several in a row.

    Where no guard fires for what goes in, the first one changes nothing, so the next one gets the same, and so on.
    Where one does, all run: what one makes may be what another one converts.
    """
    if len(conversions) < 2:
        return conversions[0] if conversions else None
    guards = [one.guard for one in conversions]
    united = tuple(dict.fromkeys(needle for guard in guards for needle in guard)) if all(guards) else ()

    def convert(value: Any, notes: Notes) -> Any:
        for one in conversions:
            value = one.convert(value, notes)
        return value

    return Conversion(convert, united)


def chain(source: str, target: str) -> Chain | None:
    """Return the steps from a revision to another one; `None` where no steps lead there.

    Only the modules of those steps are imported.

    Args:
        source: The name of a revision, e.g. `2025-11-25`.
        target: Another one.
    """
    return _chain(package_name(source), package_name(target))


@cache
def _chain(source: str, target: str) -> Chain | None:
    path = _path(source, target, neighbours()) or _path(source, target, neighbours(users=True))
    if path is None:
        return None
    return Chain(*(_step(one, other) for one, other in pairwise(path)))


@cache
def _step(source: str, target: str) -> Step:
    step: Step = import_module(f"{PACKAGE}.{source}_to_{target}").STEP
    return step


def packages(*, users: bool = False) -> tuple[str, ...]:
    """Return the packages of all revisions that steps lead to, the oldest first; imports none of them.

    Args:
        users: Whether those in the user's folder count too, which takes longer to find out.
    """
    return tuple(sorted(neighbours(users=users), key=_order))


def package_name(revision: str) -> str:
    """Return `2025-11-25` -> `v2025_11_25`."""
    return "v" + re.sub(r"\W+", "_", revision).strip("_")


@cache
def neighbours(*, users: bool = False) -> Mapping[str, tuple[str, ...]]:
    """Return package -> packages that a step leads to, by the names of the modules that are there.

    Args:
        users: As for `packages`.
    """
    spec = find_spec(PACKAGE)
    places = list((spec and spec.submodule_search_locations) or ())
    if users:
        with suppress(ValueError):  # then there is none that anything could be imported from
            places += [str(folder / "bridges")] if (folder := bindings_folder()) is not None else []
    pairs = [module.name.split(_BETWEEN, 1) for module in iter_modules(places)]
    found: dict[str, tuple[str, ...]] = {}
    for source, target in sorted((pair[0], f"v{pair[1]}") for pair in pairs if len(pair) == 2):
        found[source] = (*found.get(source, ()), target)
    return MappingProxyType(found)


def _path(source: str, target: str, neighbours: Mapping[str, tuple[str, ...]]) -> list[str] | None:
    """Return the shortest way, both ends included; `None` where there is none."""
    paths = deque([[source]])
    seen = {source}
    while paths:
        path = paths.popleft()
        if path[-1] == target:
            return path
        for following in neighbours.get(path[-1], ()):
            if following not in seen:
                seen.add(following)
                paths.append([*path, following])
    return None


def _order(package: str) -> tuple[str, bool, str]:
    """Return the key that sorts packages: by date, drafts of a date before it, those without a date at the end."""
    found = re.match(r"v\d{4}_\d\d_\d\d", package)
    return found[0] if found else "w", found is None or found[0] == package, package
