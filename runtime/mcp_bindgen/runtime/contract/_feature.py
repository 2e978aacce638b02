"""What the features of a contract's server have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from types import ModuleType
from typing import Any, ClassVar, TypeAlias

from ..core import jsonrpc
from ..core.errors import INVALID_PARAMS, InvalidParams, ProtocolError
from ..core.methods import Request
from .errors import InvalidResult
from .handlers import BoundContract, BoundHandler, Kind

Build: TypeAlias = Callable[[BoundHandler, Any], Any]
"""Makes the wire form of a result from what a handler returned."""

_LONGEST = 100  # characters of a name that is repeated


class Feature:
    """A base of the classes of a contract's servers, beside the generated `Server` of a revision.

    Attributes:
        contract: The contract and its handlers.
        package: The bindings of the revision.
        members: The lists of a contract that it answers from.
    """

    contract: BoundContract
    package: ModuleType
    members: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def is_in(cls, contract: BoundContract) -> bool:
        """Return whether a contract has one of the lists, be it an empty one."""
        return contract.catalog.has(*cls.members)

    def find(self, kind: Kind, name: str) -> BoundHandler:
        """Return the handler for a name; raise `ProtocolError` (-32602) if there is none."""
        found = self.contract.handlers[kind].get(name)
        if found is None:
            raise ProtocolError(INVALID_PARAMS, f"Unknown {kind}: {name[:_LONGEST]}")
        return found

    def result(self, method: str, wire: Any) -> Any:
        """Return the result of a method from its wire form; raise `InvalidResult` if the revision does not allow it."""
        try:
            return jsonrpc.typed_result(self.package.methods.METHODS[method], wire)
        except ProtocolError as error:
            raise InvalidResult(f"{self.package.types.__name__}: {error.message}") from None

    async def answer(self, method: str, handler: BoundHandler, arguments: Any, ctx: Any, build: Build) -> Any:
        """Call a handler and return the result of the method in the types of this revision.

        Args:
            method: The method's name on the wire.
            handler: The handler. It may return a whole result, in the types of any revision.
            arguments: Its typed arguments.
            ctx: The request.
            build: Makes the wire form of a result from anything else that the handler returns.

        Raises:
            InvalidResult: The handler returned what the contract or the revision does not allow.
        """
        returned = await handler.call(arguments, ctx)
        for package in (self.package, *self.contract.revisions):
            request: Request[Any, Any, Any] = package.methods.METHODS[method]
            if isinstance(returned, (request.result, *request.alternatives)):
                return returned if package is self.package else self.result(method, jsonrpc.plain(returned))
        return self.result(method, build(handler, returned))


def lists(method: str, member: str) -> Callable[[Feature, Any, Any], Awaitable[Any]]:
    """Return the handler of a list method: its only page has the entries of the contract, verbatim."""

    async def handler(self: Feature, params: Any, ctx: Any) -> Any:
        if getattr(params, "cursor", None) is not None:
            raise InvalidParams(method, [{"path": "params.cursor", "problem": "there is no such page"}])
        page = jsonrpc.plain(self.result(method, {member: []}))
        return {**page, member: self.contract.catalog.entries(member)}

    return handler


def items(handler: BoundHandler, returned: object, from_text: Callable[[str], Any]) -> list[Any]:
    """Return the wire forms of what a handler returned, a text or a sequence of models; raise `InvalidResult`."""
    if isinstance(returned, str):
        return [from_text(returned)]
    if isinstance(returned, Sequence) and not isinstance(returned, bytes):
        return [jsonrpc.plain(item) for item in returned]  # pyright: ignore[reportUnknownVariableType]
    raise handler.invalid(f"returned {type(returned).__name__}")


def text_block(text: str) -> dict[str, str]:
    """Return a block of text in wire form."""
    return {"type": "text", "text": text}
