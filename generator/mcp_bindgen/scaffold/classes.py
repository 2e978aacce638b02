"""Write the modules of a project: its classes, one for each revision, or its `App`, and their tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mcp_bindgen.emit.python import naming
from mcp_bindgen.emit.python.annotations import annotation
from mcp_bindgen.emit.python.calls import Walk, methods_in_order, walk
from mcp_bindgen.emit.python.environment import docstring, quoted
from mcp_bindgen.emit.python.expressions import sample
from mcp_bindgen.emit.python.lowered import PythonProtocol
from mcp_bindgen.ir.examples import Code

from .handler_bodies import Handler, handlers
from .plan import Plan, RevisionPlan, Style
from .rendering import module


def class_files(
    plan: Plan, doc: Callable[[Sequence[Handler]], str], tested: Callable[[RevisionPlan], Mapping[str, object]]
) -> dict[str, str]:
    """Return name -> text of the modules with a class, and of their tests.

    Args:
        plan: The project.
        doc: Function from the handlers of a class to its docstring.
        tested: Function from a revision to further values for the template of the tests.
    """
    found: dict[str, str] = {}
    for part in plan.revision_plans:
        written = handlers(part, plan.kind)
        values = {
            "names": plan.names,
            "handlers": written,
            "bindings": part.bindings,
            "bases": part.bases(plan.kind),
            "extensions": part.extensions,
            "own": part.own,
            "module": part.module,
        }
        info = {"name": plan.names.project, "version": "0.1.0"}
        about = {
            "doc": docstring(doc(written)),
            "info": sample(part.protocol, "Implementation", info, part.prefix),
        }
        text = module(f"project/{plan.kind}.py.jinja", **about, **values)
        test = module(f"project/tests/test_{plan.kind}.py.jinja", **tested(part), **values)
        found |= {f"src/{plan.names.package}/{part.module}.py": text, f"tests/test_{part.module}.py": test}
    return found


# --- clients ----------------------------------------------------------------------------------------------------------


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

    return class_files(plan, _client_doc, tested)


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


def _client_doc(written: Sequence[Handler]) -> str:
    if not written:
        return "Calls servers. It has no answers to their questions yet: override `on_...` for that."
    return "Calls servers, and answers their questions."


# --- servers ----------------------------------------------------------------------------------------------------------


EXAMPLES: Mapping[str, str] = {
    "call_tool": """tools/call greet '{"name": "Ada"}'""",
    "get_prompt": """prompts/get greeting '{"name": "Ada"}'""",
    "read_resource": "resources/read memo://welcome",
}
"""Stub -> arguments of `mcp-bindgen call` that show its first answer."""


def start(plan: Plan) -> dict[str, object]:
    """Return how a module of the project comes by its classes, as variables of templates.

    `place` is the module to import from, `imported` the names to import, `classes` the names of the classes there, and
    `servers` the arguments that make the servers.
    """
    class_, modules = plan.names.class_, [part.module for part in plan.revision_plans]
    if plan.style is Style.APP:
        return {"place": ".", "imported": ["server"], "classes": [], "servers": "server.app"}
    if plan.contract is not None and plan.kind == "server":
        place, imported, classes = ".server", [class_], [class_]
    elif len(modules) == 1:
        place, imported, classes = f".{modules[0]}", [class_], [class_]
    else:
        place, imported, classes = ".", modules, [f"{module}.{class_}" for module in modules]
    servers = ", ".join(f"{name}()" for name in classes)
    return {"place": place, "imported": imported, "classes": classes, "servers": servers}


def server_files(plan: Plan) -> dict[str, str]:
    """Name -> text of the files of a server without a contract: its modules and their tests."""
    if plan.style is Style.APP:
        return _app_files(plan)
    return class_files(
        plan, lambda written: _server_doc(plan, written), lambda part: {"declared": list(_declared(part))}
    )


def _app_files(plan: Plan) -> dict[str, str]:
    """Name -> text of the module with the `App`, and of its tests."""
    (part,) = plan.revision_plans
    values = {
        "names": plan.names,
        "features": [feature.name for feature in part.features],
        "declared": list(_declared(part)),
        "bindings": part.bindings,
    }
    return {
        f"src/{plan.names.package}/server.py": module("project/app_server.py.jinja", **values),
        "tests/test_server.py": module("project/tests/test_app_server.py.jinja", **values),
    }


def first_calls(plan: Plan) -> list[str]:
    """Return arguments of `mcp-bindgen call` that show first answers of a server without a contract."""
    stubs = dict.fromkeys(
        part.protocol.stub(method)
        for part in plan.revision_plans
        for feature in part.features
        for method in feature.methods
    )
    return [EXAMPLES[stub] for stub in stubs if stub in EXAMPLES]


def _server_doc(plan: Plan, written: Sequence[Handler]) -> str:
    more = 'What has no method here is answered with "method not found".' if written else "It offers nothing yet."
    return f"Serve `{plan.introduced}`. {more}"


def _declared(revision_plan: RevisionPlan) -> Iterator[str]:
    """Return the features that clients see as capabilities, as literals of Python."""
    known = {capability.name for capability in revision_plan.protocol.capabilities}
    yield from (quoted(feature.name) for feature in revision_plan.features if f"server.{feature.name}" in known)
