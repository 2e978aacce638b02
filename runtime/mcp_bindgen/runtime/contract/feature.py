"""What the parts of a contract's server have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from typing_extensions import TypeIs

from ..core import jsonrpc
from ..core.errors import INVALID_PARAMS, InvalidParams, ProtocolError
from ..core.revision import Dispatcher, Revision
from .errors import BrokenPromise
from .offers import Kind
from .promises import Promise, Promises

_LONGEST = 100  # characters of a name that is repeated


class Feature:
    """A base of the classes of a contract's servers; the generated `Server` of a revision is another one.

    Handlers answer in the types of their revision, which they find by the methods' names on the wire.

    Attributes:
        promises: What the contract promises.
        members: The lists of a contract that it answers from.
    """

    promises: Promises
    dispatcher: ClassVar[Dispatcher]
    members: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def is_in(cls, promises: Promises) -> bool:
        """Whether a contract has one of the lists, be it an empty one."""
        return promises.catalog.has(*cls.members)

    def find(self, kind: Kind, name: str) -> Promise:
        """What is promised under a name; raises `ProtocolError` (-32602) when nothing is."""
        found = self.promises.of(kind).get(name)
        if found is None:
            raise ProtocolError(INVALID_PARAMS, f"Unknown {kind}: {name[:_LONGEST]}")
        return found

    def listing(self, method: str, member: str, params: Any) -> Any:
        """The only page of a list: the entries of the contract, verbatim.

        Raises:
            InvalidParams: Another page is wanted.
        """
        if getattr(params, "cursor", None) is not None:
            raise InvalidParams(method, [{"path": "params.cursor", "problem": "there is no such page"}])
        return {**jsonrpc.plain(self.typed(method, {member: []})), member: self.promises.catalog.entries(member)}

    def typed(self, method: str, wire: Any) -> Any:
        """The result of a method from its wire form.

        Raises:
            BrokenPromise: It is none in this revision.
        """
        try:
            return jsonrpc.typed_result(self.dispatcher.revision.request(method), wire)
        except ProtocolError as error:
            raise BrokenPromise(f"{self.dispatcher.revision.name}: {error.message}") from None

    def given(self, method: str, answer: Any) -> Any:
        """What a method of the contract gave, if that is a whole result, in the types of this revision; else `None`.

        Raises:
            BrokenPromise: It is a result of another revision, and none in this one.
        """
        if isinstance(answer, _answers(self.dispatcher.revision, method)):
            return answer
        for bindings in self.promises.contract.revisions:
            if isinstance(answer, _answers(bindings.REVISION, method)):
                return self.typed(method, jsonrpc.plain(answer))
        return None


def _answers(revision: Revision, name: str) -> tuple[type[Any], ...]:
    method = revision.request(name)
    return (method.result, *method.alternatives)


def is_several(answer: object) -> TypeIs[Sequence[Any]]:
    """Whether a method gave a list of things, and no text."""
    return isinstance(answer, Sequence) and not isinstance(answer, str | bytes)


def text_block(text: str) -> dict[str, str]:
    """A block of text, in wire form."""
    return {"type": "text", "text": text}
