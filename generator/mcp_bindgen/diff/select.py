"""Select findings by role, method, capability, plane and severity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mcp_bindgen.ir.model import Protocol, Sender
from mcp_bindgen.spec.errors import BadInput, suggestion

from .finding import RULES, Comparison, Finding, Plane, Severity
from .verdict import verdicts


@dataclass(frozen=True)
class Selection:
    """Selection of findings; an empty criterion selects all.

    Attributes:
        role: Messages of this side, with their results.
        methods: Messages of these methods.
        capabilities: Messages that require one of these capabilities of either side, e.g. `tools`.
        planes: Findings on these planes.
        least: Minimum severity.
        ignored: Rules with findings to omit.
    """

    role: Sender | None = None
    methods: frozenset[str] = frozenset()
    capabilities: frozenset[str] = frozenset()
    planes: frozenset[Plane] = frozenset()
    least: Severity = Severity.INFO
    ignored: frozenset[str] = frozenset()

    def of(self, comparison: Comparison) -> Comparison:
        """Return the selected part of a comparison, with verdicts on the selected messages.

        Findings about the envelope or about errors affect all messages.
        """
        old, new = comparison.old, comparison.new
        needs = _needs(old) | _needs(new)
        about = tuple(finding for finding in comparison.findings if self._is_about(finding, needs))
        wanted = tuple(finding for finding in about if self._is_wanted(finding))
        old_client, new_client = verdicts(old, new, about)
        return replace(comparison, old_client=old_client, new_client=new_client, findings=wanted)

    def check(self, comparisons: Sequence[Comparison]) -> None:
        """Raise `BadInput`, with the nearest name, for a method or capability that neither revision has."""
        protocols = [protocol for comparison in comparisons for protocol in (comparison.old, comparison.new)]
        _check(self.methods, {method.name for protocol in protocols for method in protocol.methods}, "method")
        paths = {capability.path for protocol in protocols for capability in protocol.capabilities}
        for rule in sorted(self.ignored - RULES.keys()):
            raise BadInput(f"the configuration ignores {rule!r}, which is no rule", fix=suggestion(rule, RULES))
        _check(self.capabilities, {path.partition(".")[0] for path in paths}, "capability")

    def _is_about(self, finding: Finding, needs: dict[str, frozenset[str]]) -> bool:
        if not (self.role or self.methods or self.capabilities):
            return True
        if not finding.reaches:
            return finding.plane is Plane.WIRE
        return any(
            (self.role is None or message.sender == self.role)
            and (not self.methods or message.method in self.methods)
            and (not self.capabilities or bool(needs.get(message.method, frozenset()) & self.capabilities))
            for message in finding.reaches
        )

    def _is_wanted(self, finding: Finding) -> bool:
        is_severe = finding.severity >= self.least and finding.rule not in self.ignored
        return is_severe and (not self.planes or finding.plane in self.planes)


def _needs(protocol: Protocol) -> dict[str, frozenset[str]]:
    """Return method -> top-level names of the capabilities that it requires, without their owner."""
    return {
        method.name: frozenset(capability.split(".")[1] for _, capability in method.capabilities)
        for method in protocol.methods
    }


def _check(wanted: Iterable[str], known: Iterable[str], noun: str) -> None:
    names = sorted(known)
    for name in sorted(set(wanted) - set(names)):
        raise BadInput(f"neither revision has a {noun} {name!r}", fix=suggestion(name, names))
