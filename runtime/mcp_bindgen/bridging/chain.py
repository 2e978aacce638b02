"""Steps, the conversions between adjacent revisions, and chains of them, which lead from any revision to any other."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Any, Literal, NoReturn, TypeAlias

from mcp_bindgen.json_schema.pointer import join
from mcp_bindgen.runtime.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcp_bindgen.user_bindings import install, searched

_QUOTED = re.compile(rb'"[^"]*"')

Part: TypeAlias = Literal["params", "results"]
"""Part of a method that is converted: the params of a message, or the results of a request."""


class NotConvertible(ProtocolError):
    """A payload that the other revision cannot express.

    Attributes:
        place: The definition, or the member of a definition, that has no counterpart.
        reason: The reason, with the revision that adds or removes it.
        capability: The dotted capability, with its owner, that no peer of the other revision can have, or None.
        pointer: JSON Pointer to the value in the params or the result; empty for the whole.
    """

    def __init__(self, place: str, reason: str, capability: str | None = None, pointer: str = "") -> None:
        super().__init__(INTERNAL_ERROR, f"{place}: {reason}{pointer and f' (at {pointer})'}")
        self.place = place
        self.reason = reason
        self.capability = capability
        self.pointer = pointer

    def inside(self, key: str | int) -> NotConvertible:
        """Return the refusal of the object or array that has the value as this member or item."""
        return NotConvertible(self.place, self.reason, self.capability, join("", key) + self.pointer)


class LossReport:
    """Losses of conversions; each place and reason is recorded once. It also carries the params of a request.

    Args:
        tell: Called with a place and a reason when they are recorded for the first time.

    Attributes:
        losses: The places and reasons, in the order in which they were recorded.
        params: The params of the request of the payload, for conversions with `reads_params`; None without a request.
    """

    params: Any = None

    def __init__(self, tell: Callable[[str, str], None] | None = None) -> None:
        self.losses: dict[tuple[str, str], None] = {}
        self._tell = tell

    def of(self, params: object) -> LossReport:
        """Return the same report for one conversion, with the params of its request."""
        found = copy(self)
        found.params = params
        return found

    def record(self, place: str, reason: str) -> None:
        """Record that a value is left out, or said in other words."""
        if (place, reason) not in self.losses:
            self.losses[place, reason] = None
            if self._tell is not None:
                self._tell(place, reason)


Convert: TypeAlias = Callable[[Any, LossReport], Any]
"""Takes a JSON value, which it may edit in place, and returns the converted value; raises `NotConvertible`."""


@dataclass(frozen=True)
class Conversion:
    """Conversion of one payload.

    Attributes:
        convert: The function. It leaves a value unchanged that is converted already, unless rules move its members.
        prefilter: Pieces of compact JSON text. A payload that holds none of them needs no conversion; without pieces,
            any payload may need it.
        reads_params: True if a function of the user reads the params of the request.
    """

    convert: Convert
    prefilter: tuple[bytes, ...] = ()
    reads_params: bool = False

    def applied(self, wire: Any, losses: LossReport, params: Callable[[], Any]) -> Any:
        """Return a converted payload, given its wire form, which may be edited in place, and the params to read."""
        return self.convert(wire, losses.of(params()) if self.reads_params else losses)

    def may_apply(self, data: bytes) -> bool:
        """Return True if a payload may need conversion, given its compact JSON text without escapes."""
        return not self.prefilter or any(piece in data for piece in self.prefilter)

    def may_apply_to_any(self, data: bytes) -> bool:
        """Return True if a payload may need conversion, given JSON text with any spaces and escapes."""
        return b"\\" in data or any(all(word in data for word in words) for words in self._words)

    @cached_property
    def _words(self) -> tuple[tuple[bytes, ...], ...]:
        """The quoted words of each piece of the prefilter; they do not depend on spaces."""
        return tuple(tuple(_QUOTED.findall(piece)) for piece in self.prefilter or (b"",))


@dataclass(frozen=True)
class Ruling:
    """Statement of a rule about a place.

    Attributes:
        place: A definition and a member, or an alternative of a union there.
        reason: The reason for the conversion or refusal.
        capability: The dotted capability, with its owner, that no peer of the target can have, or None.
    """

    place: str
    reason: str
    capability: str | None = None


Remark: TypeAlias = tuple[Part | Literal["method"], Ruling]
"""Part of a method, or the whole message, and the ruling by which it is refused, or arrives with less."""


@dataclass(frozen=True)
class RuleContext:
    """Context of a function that a rule names.

    Attributes:
        ruling: The place and the reason of the rule.
        losses: The report of the losses.
        source: The revision of the value; empty for functions of `mcp_bindgen.bridging.rules`.
        target: The adjacent revision that the value is converted to; likewise.
    """

    ruling: Ruling
    losses: LossReport
    source: str = ""
    target: str = ""

    @property
    def direction(self) -> Literal["newer", "older"]:
        """The direction of the step; a revision without a date is newer than one with a date."""
        return "newer" if _order(package_name(self.target)) > _order(package_name(self.source)) else "older"

    @property
    def params(self) -> Any:
        """The params in wire form, as their sender sent them in its own revision; None without a request.

        For a result these are the params of its request, and for params the params themselves before all conversions.
        If several steps lie between the two peers, each step gets the same params.
        """
        return self.losses.params

    def record_loss(self) -> None:
        """Record that the value arrives with less, or in other words."""
        self.losses.record(self.ruling.place, self.ruling.reason)

    def refuse(self) -> NoReturn:
        """Refuse the payload; raises `NotConvertible`."""
        raise NotConvertible(self.ruling.place, self.ruling.reason, self.ruling.capability)


@dataclass(frozen=True)
class Step:
    """Conversions from one revision to an adjacent revision. Missing params count as `{}`.

    Attributes:
        source: The revision of the input.
        target: The revision of the output.
        params: Method -> conversion of its params; a method without a row keeps them.
        results: Method -> conversion of its results; a method without a row keeps them.
        renamed: Method of the source -> its name in the target.
        absent: Method of the source that the target does not have -> reason.
        unsent: Sender -> method that only the other side may send in the target -> reason.
        adapted: Methods of `absent` and `unsent` that an `EraAdapter` replaces.
        errors: Method -> error code of the source -> code of the target; `*` stands for all other methods.
        field_collisions: Part -> method -> members that the source leaves open and the target types. A valid payload
            of the source may hold any value there.
        remarks: Method -> parts of its payloads that are lost or refused.
        implementation: The conversion of the `Implementation` of a side, which the connection keeps; None if it stays.
    """

    source: str
    target: str
    params: Mapping[str, Conversion] = field(default_factory=dict[str, Conversion])
    results: Mapping[str, Conversion] = field(default_factory=dict[str, Conversion])
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    absent: Mapping[str, str] = field(default_factory=dict[str, str])
    unsent: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    adapted: frozenset[str] = frozenset()
    errors: Mapping[str, Mapping[int, int]] = field(default_factory=dict[str, Mapping[int, int]])
    field_collisions: Mapping[Part, Mapping[str, frozenset[str]]] = field(
        default_factory=dict[Part, Mapping[str, frozenset[str]]]
    )
    remarks: Mapping[str, tuple[Remark, ...]] = field(default_factory=dict[str, tuple[Remark, ...]])
    implementation: Convert | None = None


PACKAGE = f"{__name__.partition('.')[0]}.bridges"
"""The package of the generated steps: `v2025_06_18_to_v2025_11_25` and so on."""

_BETWEEN = "_to_v"


class Chain:
    """Steps in order, as one conversion.

    Args:
        steps: Each begins at the revision where the previous one ends; an empty chain is the identity.
    """

    def __init__(self, *steps: Step) -> None:
        self.steps = steps
        self._conversions: dict[tuple[Part, str], Conversion | None] = {}

    def name(self, method: str) -> str:
        """Return the name of a method in the last revision."""
        for step in self.steps:
            method = step.renamed.get(method, method)
        return method

    def _named(self, method: str) -> Iterator[tuple[Step, str]]:
        """Yield each step with the name of a method in its source, given the method's name at either end."""
        for step in reversed(self.steps):
            method = next((old for old, new in step.renamed.items() if new == method), method)
        for step in self.steps:
            yield step, method
            method = step.renamed.get(method, method)

    def params(self, method: str) -> Conversion | None:
        """Return the conversion of the params of a method, or None if they stay unchanged."""
        return self.conversion("params", method)

    def results(self, method: str) -> Conversion | None:
        """Return the conversion of the results of a method, or None if they stay unchanged."""
        return self.conversion("results", method)

    def conversion(self, part: Part, method: str) -> Conversion | None:
        """Return the conversion of a part of a method, or None if that stays unchanged."""
        key = (part, method)
        if key not in self._conversions:
            rows = [(step.params if part == "params" else step.results, name) for step, name in self._named(method)]
            self._conversions[key] = _compose([row[name] for row, name in rows if name in row])
        return self._conversions[key]

    def implementation(self, wire: Any, losses: LossReport) -> Any:
        """Return the `Implementation` of a side, given its wire form, which may be edited in place."""
        return sequence(*(step.implementation for step in self.steps if step.implementation))(wire, losses)

    def absent(self, method: str) -> str | None:
        """Return why a method of the first revision has no counterpart in the last, or None if it has."""
        return next((step.absent[name] for step, name in self._named(method) if name in step.absent), None)

    def error(self, method: str, code: int) -> int:
        """Return the error code of the last revision for a code of the first."""
        for step, name in self._named(method):
            code = step.errors.get(name, step.errors.get("*", {})).get(code, code)
        return code

    def field_collisions(self, part: Part, method: str) -> frozenset[str]:
        """Return the members that one revision leaves open and a later one types."""
        steps = self._named(method)
        return frozenset[str]().union(*(step.field_collisions.get(part, {}).get(name, ()) for step, name in steps))

    def remarks(self, method: str) -> tuple[Remark, ...]:
        """Return the parts of the payloads of a method that are lost or refused, or that the whole method is."""
        found: dict[Remark, None] = {}
        for step, name in self._named(method):
            found |= dict.fromkeys(step.remarks.get(name, ()))
            for gone in (step.absent, *step.unsent.values()):
                if name in gone and name not in step.adapted:
                    found["method", Ruling(name, gone[name])] = None
            if name in step.absent:
                break
        return tuple(found)


def _compose(conversions: list[Conversion]) -> Conversion | None:
    """Return one conversion for several in a row.

    If no prefilter matches the input, the first conversion changes nothing, so the next one gets the same input, and
    so on. If one matches, all run: the output of one may need the next one.
    """
    if len(conversions) < 2:
        return conversions[0] if conversions else None
    prefilters = [one.prefilter for one in conversions]
    united = tuple(dict.fromkeys(piece for prefilter in prefilters for piece in prefilter)) if all(prefilters) else ()

    reads_params = any(one.reads_params for one in conversions)
    return Conversion(sequence(*(one.convert for one in conversions)), united, reads_params)


def sequence(*edits: Convert) -> Convert:
    """Edit the same value several times."""

    def convert(value: object, losses: LossReport) -> Any:
        for edit in edits:
            value = edit(value, losses)
        return value

    return convert


def chain(source: str, target: str) -> Chain | None:
    """Return the steps between two revisions, or None if no steps lead there; imports only these steps.

    Args:
        source: The name of a revision, e.g. `2025-11-25`.
        target: The name of the other revision.
    """
    return _chain(package_name(source), package_name(target), searched())


@cache
def _chain(source: str, target: str, folder: Path | None) -> Chain | None:
    path = _path(source, target, _neighbours(folder))
    if path is None:
        return None
    return Chain(*(import_module(f"{PACKAGE}.{one}_to_{other}").STEP for one, other in pairwise(path)))


def packages() -> tuple[str, ...]:
    """Return the packages of all revisions that steps lead to, the oldest first; imports none of them."""
    return tuple(sorted(neighbours(), key=_order))


def package_name(revision: str) -> str:
    """Return `2025-11-25` -> `v2025_11_25`."""
    return "v" + re.sub(r"\W+", "_", revision).strip("_")


def neighbours() -> Mapping[str, tuple[str, ...]]:
    """Return package -> packages that a step leads to, by the names of the modules that Python can import."""
    return _neighbours(searched())


@cache
def _neighbours(folder: Path | None) -> Mapping[str, tuple[str, ...]]:
    spec = find_spec(PACKAGE)
    folders = list((spec and spec.submodule_search_locations) or ())
    folders += [] if folder is None else [str(folder / "bridges")]
    pairs = [module.name.split(_BETWEEN, 1) for module in iter_modules(folders)]
    found: dict[str, tuple[str, ...]] = {}
    for source, target in sorted((pair[0], f"v{pair[1]}") for pair in pairs if len(pair) == 2):
        found[source] = (*found.get(source, ()), target)
    return MappingProxyType(found)


def distances(package: str) -> dict[str, int]:
    """Return package -> number of steps from `package` that also lead back, itself included.

    Steps from a package that is not installed are in the user's folder, which Python searches from then on.
    """
    if package not in neighbours():
        install()
    around = neighbours()
    both = {one: tuple(other for other in others if one in around.get(other, ())) for one, others in around.items()}
    paths = [_path(package, other, both) for other in [package, *both]]
    return {path[-1]: len(path) - 1 for path in paths if path is not None}


def _path(source: str, target: str, neighbours: Mapping[str, tuple[str, ...]]) -> list[str] | None:
    """Return the shortest path, both ends included, or None."""
    paths = deque([[source]])
    seen = {source}
    while paths:
        path = paths.popleft()
        if path[-1] == target:
            return path
        following = [one for one in neighbours.get(path[-1], ()) if one not in seen]
        seen.update(following)
        paths.extend([*path, one] for one in following)
    return None


def _order(package: str) -> tuple[str, bool, str]:
    """Return the sort key of a package: its date, drafts of a date before it, packages without a date at the end."""
    found = re.match(r"v\d{4}_\d\d_\d\d", package)
    return found[0] if found else "w", found is None or found[0] == package, package


def missed(home: str, revision: str, handled: Iterable[str], asked: Iterable[str] = ()) -> list[str]:
    """Return the losses of peers of a revision, a sentence for each reason.

    Args:
        home: The revision of a server or client class.
        revision: The revision of its peers.
        handled: Methods that the class handles; their results are sent.
        asked: Methods that the class sends; their params are sent.

    Raises:
        LookupError: No steps lead between the revisions.
    """
    steps = known_chain(home, revision)
    found: dict[str, list[str]] = {}
    for methods, part in ((handled, "results"), (asked, "params")):
        for method in methods:
            for where, ruling in steps.remarks(method):
                if where in (part, "method") and method not in found.setdefault(ruling.reason, []):
                    found[ruling.reason].append(method)
    return [f"{', '.join(methods)}: {reason}" for reason, methods in found.items()]


def known_chain(source: str, target: str) -> Chain:
    """Return the steps between two revisions; raise `LookupError` if no steps lead there."""
    found = chain(source, target)
    if found is None:
        raise LookupError(f"no bridge leads from MCP {source} to MCP {target}")
    return found
