"""Write the files of a client's project that depend on what it offers, and on what it can ask."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_bindgen.emit.annotations import annotation
from mcp_bindgen.emit.environment import docstring, quoted
from mcp_bindgen.protocol import Protocol, naming
from mcp_bindgen.protocol.calls import Walk, methods_in_order, walk
from mcp_bindgen.protocol.model import Object, Ref

from .expressions import expression
from .handler_bodies import PREFIX, Handler, handlers
from .plan import Plan, RevisionPlan
from .rendering import module, render
from .server import introduction


@dataclass(frozen=True)
class Shown:
    """A list of a server's that a client shows.

    Attributes:
        capability: What the server declares when it has one.
        walk: The call that walks through it.
        label: What an item is called.
        variable: The same as a name in Python.
    """

    capability: str
    walk: str
    label: str
    variable: str


def client_project(plan: Plan) -> dict[str, str]:
    """Name -> text of the files of a client: its modules, its command, and their tests."""
    found: dict[str, str] = {}
    for revision_plan in plan.revision_plans:
        written = handlers(revision_plan.protocol, "client", revision_plan.features)
        values = {
            "names": plan.names,
            "handlers": written,
            "bindings": revision_plan.bindings,
            "bases": revision_plan.bases(plan.kind),
            "extensions": revision_plan.extensions,
            "own": revision_plan.own,
            "module": revision_plan.module,
        }
        info = introduction(plan, revision_plan)
        text = render("project/client.py.jinja", doc=docstring(_doc(written)), info=info, **values)
        test = render(
            "project/tests/test_client.py.jinja",
            typed=typed(plan) if revision_plan is plan.revision_plans[-1] else None,
            **_curious(revision_plan),
            **values,
        )
        found[f"src/{plan.names.package}/{revision_plan.module}.py"] = module(text)
        found[f"tests/test_{revision_plan.module}.py"] = module(test)
    return found


def typed(plan: Plan) -> str | None:
    """Return the class of the typed client, which there is for the newest revision of a project with a contract."""
    if plan.contract is None:
        return None
    from .generated.typed_client import client_class

    return client_class(plan.names.package)


def _curious(revision_plan: RevisionPlan) -> dict[str, str]:
    """Return the expressions that a server uses in the tests of a client."""

    def new(name: str, value: object) -> str:
        return expression(revision_plan.protocol, Ref(name), value, PREFIX)

    listing = next(method for method in revision_plan.protocol.methods if method.stub == "list_tools")
    assert listing.params is not None
    return {
        "curious": new("Implementation", {"name": "curious", "version": "1"}),
        "list_params": annotation(listing.params, prefix=PREFIX),
        "listed": new("ListToolsResult", {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]}),
        "called": new("CallToolResult", {"content": []}),
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
            capability = quoted(path.partition(".")[0])  # its first list is the one that every server has
            found.setdefault(capability, Shown(capability, walked.name, one.replace("_", " "), one))
    return list(found.values())


def _has_name(protocol: Protocol, walked: Walk) -> bool:
    item = protocol.resolve(walked.item)
    field = item.field("name") if isinstance(item, Object) else None
    return field is not None and field.required


def _doc(written: list[Handler]) -> str:
    if not written:
        return "Calls what servers offer. Servers may ask it nothing yet: override `on_...` for that."
    return "Calls what servers offer, and answers what they may ask."
