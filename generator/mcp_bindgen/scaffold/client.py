"""Write the files of a client's project that depend on its features and on the lists of its servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_bindgen.emit.python import naming
from mcp_bindgen.emit.python.annotations import annotation
from mcp_bindgen.emit.python.calls import Walk, methods_in_order, walk
from mcp_bindgen.emit.python.environment import quoted
from mcp_bindgen.emit.python.expressions import sample
from mcp_bindgen.emit.python.lowered import PythonProtocol
from mcp_bindgen.ir.examples import Code

from .classes import class_files
from .handler_bodies import Handler
from .plan import Plan, RevisionPlan


@dataclass(frozen=True)
class Shown:
    """A list of a server's that a client shows.

    Attributes:
        capability: The capability that a server with such a list declares.
        walk: The call that walks through it.
        label: The word for an item.
        variable: The same as a name in Python.
    """

    capability: str
    walk: str
    label: str
    variable: str


def client_project(plan: Plan) -> dict[str, str]:
    """Name -> text of the files of a client: its modules, its command, and their tests."""

    def tested(part: RevisionPlan) -> dict[str, str | None]:
        return {"typed": typed(plan) if part is plan.revision_plans[-1] else None, **_curious(part)}

    return class_files(plan, _doc, tested)


def typed(plan: Plan) -> str | None:
    """Return the class of the typed client, which there is for the newest revision of a project with a contract."""
    return plan.contract.client_class(plan.names.package) if plan.contract is not None else None


def _curious(revision_plan: RevisionPlan) -> dict[str, str]:
    """Return the expressions that a server uses in the tests of a client."""

    def new(definition: str, **given: object) -> str:
        return sample(revision_plan.protocol, definition, given, revision_plan.prefix)

    listing = next(method for method in revision_plan.protocol.methods if method.name == "tools/list")
    assert listing.params is not None
    return {
        "curious": new("Implementation", name="curious", version="1"),
        "list_params": annotation(listing.params, prefix=revision_plan.prefix),
        "listed": new("ListToolsResult", tools=[Code(new("Tool", name="ask"))]),
        "called": new("CallToolResult"),
    }


def shown(plan: Plan) -> list[Shown]:
    """Return the lists that all of a client's revisions have, and whose items have names."""
    known = [_lists(revision_plan) for revision_plan in plan.revision_plans]
    return [one for one in known[-1] if all(one in others for others in known)]


def _lists(revision_plan: RevisionPlan) -> list[Shown]:
    found: dict[str, Shown] = {}
    for method in methods_in_order(revision_plan.protocol):
        walked = walk(revision_plan.protocol, method)
        owner, _, path = (method.capability("client") or "").partition(".")
        if walked is not None and owner == "server" and _has_name(revision_plan.protocol, walked):
            one = naming.snake(annotation(walked.item, prefix=""))
            capability = quoted(path.partition(".")[0])  # every server has its first list
            found.setdefault(capability, Shown(capability, walked.name, one.replace("_", " "), one))
    return list(found.values())


def _has_name(protocol: PythonProtocol, walked: Walk) -> bool:
    field = protocol.field_of(walked.item, "name")
    return field is not None and field.required


def _doc(written: Sequence[Handler]) -> str:
    if not written:
        return "Calls servers. It has no answers to their questions yet: override `on_...` for that."
    return "Calls servers, and answers their questions."
