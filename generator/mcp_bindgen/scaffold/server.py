"""The files of a server's project that depend on what it offers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mcp_bindgen.emit.environment import docstring, quoted
from mcp_bindgen.protocol.model import Ref

from .answers import PREFIX, Handler, handlers
from .expressions import expression
from .plan import Plan, Speech
from .rendering import module, render

EXAMPLES: Mapping[str, str] = {
    "call_tool": """tools/call greet '{"name": "Ada"}'""",
    "get_prompt": """prompts/get greeting '{"name": "Ada"}'""",
    "read_resource": "resources/read memo://welcome",
}
"""Stub -> what to say to `mcp-bindgen call` to see its first answer."""


@dataclass(frozen=True)
class Start:
    """How a module of the project comes by its classes.

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
    """How the classes of a project are imported."""
    class_ = plan.names.class_
    if plan.contract is not None and plan.kind == "server":
        return Start(".server", (class_,), (class_,), f"*{class_}().servers()")
    modules = tuple(speech.module for speech in plan.speeches)
    if len(modules) == 1:
        return Start(f".{modules[0]}", (class_,), (class_,))
    return Start(".", modules, tuple(f"{module}.{class_}" for module in modules))


def server_files(plan: Plan) -> dict[str, str]:
    """Name -> text of the files of a server without a contract: its modules and their tests."""
    found: dict[str, str] = {}
    for speech in plan.speeches:
        written = handlers(speech.protocol, "server", speech.features)
        values = {"names": plan.names, "handlers": written, "package": speech.package, "module": speech.module}
        text = render(
            "project/server.py.jinja", doc=docstring(_doc(written)), info=introduction(plan, speech), **values
        )
        test = render("project/tests/test_server.py.jinja", declared=list(_declared(speech)), **values)
        found[f"src/{plan.names.package}/{speech.module}.py"] = module(text)
        found[f"tests/test_{speech.module}.py"] = module(test)
    return found


def calls(plan: Plan) -> list[str]:
    """What to say to `mcp-bindgen call` after the server, to see first answers."""
    if plan.contract is not None:
        from .contracted import contract_calls

        return contract_calls(plan.contract)
    stubs = [method.stub for speech in plan.speeches for feature in speech.features for method in feature.methods]
    return [EXAMPLES[stub] for stub in dict.fromkeys(stubs) if stub in EXAMPLES]


def introduced(plan: Plan) -> str:
    """The name by which a server introduces itself: that of its contract, or of the project."""
    info = plan.contract.info if plan.contract is not None else None
    return str((info or {}).get("name", plan.names.project))


def introduction(plan: Plan, speech: Speech) -> str:
    """The expression of who the project says it is."""
    value = {"name": plan.names.project, "version": "0.1.0"}
    return expression(speech.protocol, Ref("Implementation"), value, PREFIX)


def _doc(written: list[Handler]) -> str:
    if not written:
        return "Has no requests of its own to answer yet."
    return 'Answers what clients ask. What has no method here is answered with "method not found".'


def _declared(speech: Speech) -> Iterator[str]:
    """The features that clients see as capabilities, as literals of Python."""
    known = {capability.name for capability in speech.protocol.capabilities}
    yield from (quoted(feature.name) for feature in speech.features if f"server.{feature.name}" in known)
