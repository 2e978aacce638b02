"""Select findings by role, method, capability, plane and severity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mcp_bindgen.protocol.model import Protocol, Sender
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.errors import suggestion

from .finding import Comparison, Finding, Plane, Severity
from .verdict import verdicts


@dataclass(frozen=True)
class Selection:
    """The changes that are wanted; an empty criterion restricts nothing.

    Attributes:
        role: Messages that this side sends, with what answers them.
        methods: These methods.
        capabilities: Messages that need one of these capabilities of either side, e.g. `tools`.
        planes: Findings that show there.
        least: Findings that are at least as severe.
    """

    role: Sender | None = None
    methods: frozenset[str] = frozenset()
    capabilities: frozenset[str] = frozenset()
    planes: frozenset[Plane] = frozenset()
    least: Severity = Severity.INFO

    def of(self, comparison: Comparison) -> Comparison:
        """Return the part of a comparison that is wanted; its verdicts are about the wanted messages only.

        A finding that is about the envelope of all messages, or about errors, is always about the wanted ones too.
        """
        old, new = comparison.old, comparison.new
        needs = _needs(old) | _needs(new)
        about = tuple(finding for finding in comparison.findings if self._is_about(finding, needs))
        wanted = tuple(finding for finding in about if self._is_wanted(finding))
        old_client, new_client = verdicts(old, new, about)
        return replace(comparison, old_client=old_client, new_client=new_client, findings=wanted)

    def check(self, comparisons: Sequence[Comparison]) -> None:
        """Refuse what none of the revisions has; raise `BadInput` with the nearest name."""
        protocols = [protocol for comparison in comparisons for protocol in (comparison.old, comparison.new)]
        _check(self.methods, {method.name for protocol in protocols for method in protocol.methods}, "method")
        paths = {capability.path for protocol in protocols for capability in protocol.capabilities}
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
        return finding.severity >= self.least and (not self.planes or finding.plane in self.planes)


def _needs(protocol: Protocol) -> dict[str, frozenset[str]]:
    """Return method -> the capabilities that it needs, without their owner and what is below them."""
    return {
        method.name: frozenset(capability.split(".")[1] for _, capability in method.capabilities)
        for method in protocol.methods
    }


def _check(wanted: Iterable[str], known: Iterable[str], what: str) -> None:
    names = sorted(known)
    for name in sorted(set(wanted) - set(names)):
        raise BadInput(f"neither revision has a {what} {name!r}", fix=suggestion(name, names))
