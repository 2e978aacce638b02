"""The files of a client's project that depend on what it offers, and on what it can ask."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_bindgen.emit.annotations import annotation
from mcp_bindgen.emit.environment import docstring, quoted
from mcp_bindgen.protocol import Protocol, naming
from mcp_bindgen.protocol.calls import Walk, methods_in_order, walk
from mcp_bindgen.protocol.model import Object, Ref

from .answers import PREFIX, Handler, handlers
from .expressions import expression
from .plan import Plan, Speech
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
    for speech in plan.speeches:
        written = handlers(speech.protocol, "client", speech.features)
        values = {"names": plan.names, "handlers": written, "package": speech.package, "module": speech.module}
        info = introduction(plan, speech)
        text = render("project/client.py.jinja", doc=docstring(_doc(written)), info=info, **values)
        test = render(
            "project/tests/test_client.py.jinja",
            typed=typed(plan) if speech is plan.speeches[-1] else None,
            **_curious(speech),
            **values,
        )
        found[f"src/{plan.names.package}/{speech.module}.py"] = module(text)
        found[f"tests/test_{speech.module}.py"] = module(test)
    return found


def typed(plan: Plan) -> str | None:
    """The class of the typed client, which there is for the newest revision of a project with a contract."""
    if plan.contract is None:
        return None
    from .generated.typed_client import client_class

    return client_class(plan.names.package)


def _curious(speech: Speech) -> dict[str, str]:
    """What a server says in the tests of a client, as expressions."""

    def new(name: str, value: object) -> str:
        return expression(speech.protocol, Ref(name), value, PREFIX)

    listing = next(method for method in speech.protocol.methods if method.stub == "list_tools")
    assert listing.params is not None
    return {
        "curious": new("Implementation", {"name": "curious", "version": "1"}),
        "list_params": annotation(listing.params, prefix=PREFIX),
        "listed": new("ListToolsResult", {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]}),
        "called": new("CallToolResult", {"content": []}),
    }


def shown(plan: Plan) -> list[Shown]:
    """The lists that all of a client's revisions have, and whose items have names."""
    known = [_lists(speech) for speech in plan.speeches]
    return [one for one in known[-1] if all(one in others for others in known)]


def _lists(speech: Speech) -> list[Shown]:
    found: dict[str, Shown] = {}
    for method in methods_in_order(speech.protocol):
        walked = walk(speech.protocol, method)
        owner, _, path = (method.capability("client") or "").partition(".")
        if walked is not None and owner == "server" and _has_name(speech.protocol, walked):
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
