"""Check that every name of a revision is there once in the class or module that it goes into."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcp_bindgen.protocol import Protocol, naming
from mcp_bindgen.protocol.model import Sender
from mcp_bindgen.spec import BadInput

from .stubs import calls, constant, handlers


def check_scopes(protocol: Protocol) -> None:
    """Refuse two definitions that give the same name to a method, a stub or an error.

    Raises:
        BadInput: One of them would hide the other.
    """
    _check("methods.py", ((constant(method), method.definition) for method in protocol.methods))
    _check("errors.py", ((naming.constant(error.name), error.definition or error.name) for error in protocol.errors))
    _check("Client", [*_calls(protocol, "client"), *_handlers(protocol, "client")])
    _check("Server", _handlers(protocol, "server"))
    _check("Context", _calls(protocol, "server"))


def _calls(protocol: Protocol, sender: Sender) -> Iterator[tuple[str, str]]:
    for call in calls(protocol, sender):
        yield call.name, call.method.definition
        if call.walk is not None:
            yield call.walk.name, call.method.definition


def _handlers(protocol: Protocol, receiver: Sender) -> Iterator[tuple[str, str]]:
    for handler in handlers(protocol, receiver):
        yield handler.name, handler.method.definition


def _check(scope: str, names: Iterable[tuple[str, str]]) -> None:
    owners: dict[str, str] = {}
    for name, definition in names:
        if name in owners:
            raise BadInput(
                f"{owners[name]} and {definition} would both be {name!r} in {scope}",
                pointer=f"/$defs/{definition}",
                fix="rename one of them with a patch",
            )
        owners[name] = definition
