"""Write the files of a server's project that depend on what it offers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mcp_bindgen.emit.environment import docstring, quoted
from mcp_bindgen.protocol.model import Ref

from .expressions import expression
from .handler_bodies import PREFIX, Handler, handlers
from .plan import Plan, RevisionPlan
from .rendering import module, render

EXAMPLES: Mapping[str, str] = {
    "call_tool": """tools/call greet '{"name": "Ada"}'""",
    "get_prompt": """prompts/get greeting '{"name": "Ada"}'""",
    "read_resource": "resources/read memo://welcome",
}
"""Stub -> what to say to `mcp-bindgen call` to see its first answer."""


@dataclass(frozen=True)
class Start:
    """The way in which a module of the project comes by its classes.

    Attributes:
        place: The module to import from.
        imported: What to import.
        classes: The names of the project's classes there.
        made: What makes the servers, where it is not the classes.
    """

    place: str
    imported: tuple[str, ...]
    classes: tuple[str, ...]
    made: str = ""

    @property
    def servers(self) -> str:
        """The arguments that make the servers."""
        return self.made or ", ".join(f"{name}()" for name in self.classes)


def start(plan: Plan) -> Start:
    """Return how the classes of a project are imported."""
    class_ = plan.names.class_
    if plan.contract is not None and plan.kind == "server":
        return Start(".server", (class_,), (class_,), f"*{class_}().servers()")
    modules = tuple(revision_plan.module for revision_plan in plan.revision_plans)
    if len(modules) == 1:
        return Start(f".{modules[0]}", (class_,), (class_,))
    return Start(".", modules, tuple(f"{module}.{class_}" for module in modules))


def server_files(plan: Plan) -> dict[str, str]:
    """Name -> text of the files of a server without a contract: its modules and their tests."""
    found: dict[str, str] = {}
    for revision_plan in plan.revision_plans:
        written = handlers(revision_plan.protocol, "server", revision_plan.features, revision_plan.extensions)
        values = {
            "names": plan.names,
            "handlers": written,
            "bindings": revision_plan.bindings,
            "bases": revision_plan.bases(plan.kind),
            "extensions": revision_plan.extensions,
            "own": revision_plan.own,
            "module": revision_plan.module,
        }
        about = {"doc": docstring(_doc(plan, written)), "info": introduction(plan, revision_plan)}
        text = render("project/server.py.jinja", **about, **values)
        test = render("project/tests/test_server.py.jinja", declared=list(_declared(revision_plan)), **values)
        found[f"src/{plan.names.package}/{revision_plan.module}.py"] = module(text)
        found[f"tests/test_{revision_plan.module}.py"] = module(test)
    return found


def first_calls(plan: Plan) -> list[str]:
    """Return what to say to `mcp-bindgen call` after a server without a contract, to see first answers."""
    methods = [method for part in plan.revision_plans for feature in part.features for method in feature.methods]
    stubs = dict.fromkeys(method.stub for method in methods)
    return [EXAMPLES[stub] for stub in stubs if stub in EXAMPLES]


def introduction(plan: Plan, revision_plan: RevisionPlan) -> str:
    """Return the expression of who the project says it is."""
    value = {"name": plan.names.project, "version": "0.1.0"}
    return expression(revision_plan.protocol, Ref("Implementation"), value, PREFIX)


def _doc(plan: Plan, written: list[Handler]) -> str:
    more = 'What has no method here is answered with "method not found".' if written else "It offers nothing yet."
    return f"Serve `{plan.introduced}`. {more}"


def _declared(revision_plan: RevisionPlan) -> Iterator[str]:
    """Return the features that clients see as capabilities, as literals of Python."""
    known = {capability.name for capability in revision_plan.protocol.capabilities}
    yield from (quoted(feature.name) for feature in revision_plan.features if f"server.{feature.name}" in known)
