"""Plan the conversion of all messages of a revision to an adjacent revision."""

from __future__ import annotations

from collections.abc import Iterator

from mcp_bindgen.ir.model import Method, Object, Protocol
from mcp_bindgen.spec import BadInput

from .differences import Conversion, Difference, Kind, Payload, Plan, Side
from .edits import reach
from .payloads import Payloads
from .rules import ANY, ERROR, Rules


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
