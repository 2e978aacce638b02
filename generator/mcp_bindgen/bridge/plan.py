"""Plan the conversion of all messages of a revision to an adjacent revision."""

from __future__ import annotations

from collections.abc import Iterator

from mcp_bindgen.protocol.model import Method, Object, Protocol

from .edits import reach
from .payloads import Payloads
from .places import Conversion, Kind, Payload, Place, Plan, Side
from .rules import ANY, ERROR, Rules


def plan(source: Protocol, target: Protocol, rules: Rules) -> Plan:
    """Plan the step from `source` to `target`."""
    planner = Payloads(source, target, rules)
    methods = _Methods(planner)
    for method in source.methods:
        methods.add(method)
    errors, changed = _errors(planner)
    places = [*methods.gone, *changed, *(place for payload in methods.payloads for place in payload.places)]
    reached = {one for payload in methods.payloads for one in reach(payload.edit, planner.named)}
    return Plan(
        Side(source.revision, source.digest),
        Side(target.revision, target.digest),
        tuple(methods.payloads),
        tuple(Conversion(key, edit) for key, edit in planner.named.items() if key in reached),
        tuple(methods.gone),
        errors,
        tuple(dict.fromkeys(places)),
        tuple(rule for path, rule in rules.items() if path not in planner.used),
    )


class _Methods:
    """Planner of methods, source beside target."""

    def __init__(self, planner: Payloads) -> None:
        self.payloads: list[Payload] = []
        self.gone: list[Place] = []
        self._planner = planner
        self._theirs = {method.name: method for method in planner.target.methods}

    def add(self, method: Method) -> None:
        """Plan a method."""
        other, target = self._theirs.get(method.name), self._planner.target.revision
        if other is None:
            self.gone.append(self._planner.place((method.name,), Kind.OPEN, f"MCP {target} has no {method.name}"))
            return
        for sender in method.senders:
            if sender not in other.senders:
                words = f"in MCP {target} no {sender} sends {method.name}"
                self.gone.append(self._planner.place((method.name, sender), Kind.OPEN, words))
        self.payloads += self._payloads(method, other)

    def _payloads(self, method: Method, other: Method) -> Iterator[Payload]:
        if method.params is not None or other.params is not None:
            none = Object(())
            found = self._planner.outcome(method.params or none, other.params or none, (method.name, "params"))
            yield Payload(method.name, "params", found.edit, found.places)
        if method.answers and other.answers:
            found = self._planner.answers(method.answers, other.answers, (method.name, "result"))
            yield Payload(method.name, "results", found.edit, found.places)


def _errors(planner: Payloads) -> tuple[dict[str, dict[int, int]], list[Place]]:
    """Return the changes of error codes, and the errors that only one side has."""
    ours, theirs = ({one.name: one.code for one in side.errors} for side in (planner.source, planner.target))
    codes: dict[str, dict[int, int]] = {}
    places: list[Place] = []
    for name in sorted(ours.keys() ^ theirs.keys()):
        side = planner.target if name in ours else planner.source
        place = planner.place((ERROR, name), Kind.OPEN, f"MCP {side.revision} has no error {name}")
        places.append(place)
        if place.rule is not None and place.rule.action == "same_as":
            same = place.rule.value
            before, after = (ours[name], theirs[same]) if name in ours else (ours[same], theirs[name])
            for method in place.rule.methods or (ANY,):
                codes.setdefault(method, {})[before] = after
    return codes, places
