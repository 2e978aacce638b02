"""Write the files of a server's project that depend on its features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mcp_bindgen.emit.python.environment import quoted

from .classes import class_files
from .handler_bodies import Handler
from .plan import Plan, RevisionPlan
from .rendering import module
from .style import Style

EXAMPLES: Mapping[str, str] = {
    "call_tool": """tools/call greet '{"name": "Ada"}'""",
    "get_prompt": """prompts/get greeting '{"name": "Ada"}'""",
    "read_resource": "resources/read memo://welcome",
}
"""Stub -> arguments of `mcp-bindgen call` that show its first answer."""


@dataclass(frozen=True)
class Start:
    """The way in which a module of the project comes by its classes.

    Attributes:
        place: The module to import from.
        imported: The names to import.
        classes: The names of the project's classes there.
        made: The expression that makes the servers; empty if the classes make them.
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
    if plan.style is Style.APP:
        return Start(".", ("server",), (), "server.app")
    if plan.contract is not None and plan.kind == "server":
        return Start(".server", (class_,), (class_,), f"{class_}()")
    modules = tuple(revision_plan.module for revision_plan in plan.revision_plans)
    if len(modules) == 1:
        return Start(f".{modules[0]}", (class_,), (class_,))
    return Start(".", modules, tuple(f"{module}.{class_}" for module in modules))


def server_files(plan: Plan) -> dict[str, str]:
    """Name -> text of the files of a server without a contract: its modules and their tests."""
    if plan.style is Style.APP:
        return _app_files(plan)
    return class_files(plan, lambda written: _doc(plan, written), lambda part: {"declared": list(_declared(part))})


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


def _doc(plan: Plan, written: Sequence[Handler]) -> str:
    more = 'What has no method here is answered with "method not found".' if written else "It offers nothing yet."
    return f"Serve `{plan.introduced}`. {more}"


def _declared(revision_plan: RevisionPlan) -> Iterator[str]:
    """Return the features that clients see as capabilities, as literals of Python."""
    known = {capability.name for capability in revision_plan.protocol.capabilities}
    yield from (quoted(feature.name) for feature in revision_plan.features if f"server.{feature.name}" in known)
