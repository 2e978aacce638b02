"""The base of generated contracts: what a server offers, as methods to write."""

from __future__ import annotations

from abc import ABC
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from ..endpoint.context import Context
    from ..endpoint.server import Server
    from .catalog import Catalog


@dataclass(frozen=True)
class Completion:
    """What somebody types, for which a server may know how it goes on.

    Attributes:
        of: Whether it is an argument of a prompt or a variable of a resource template.
        name: The prompt's name, or the URI template.
        argument: The name of the argument or variable.
        value: What is typed so far.
        known: The others, as far as they are known: name -> value.
    """

    of: Literal["prompt", "template"]
    name: str
    argument: str
    value: str
    known: Mapping[str, str]


class Contract(ABC):
    """What a server promises: a method for each tool, prompt and resource, in every revision.

    A generated class says which; subclass that one, write its methods, and `run(*Yours().servers())`.

    Attributes:
        catalog: What the contract says.
        revisions: The bindings of the revisions that it is served in.
        info: How the server introduces itself, an `Implementation` in wire form; `None` for what the contract says.
        instructions: How a model should use the server; `None` for what the contract says.
        argument_errors: What becomes of a call whose arguments do not fit: an error of the protocol (-32602), or a
            result with `isError`, which hosts show to the model.
    """

    catalog: ClassVar[Catalog]
    revisions: ClassVar[tuple[ModuleType, ...]]
    info: Mapping[str, Any] | None = None
    instructions: str | None = None
    argument_errors: Literal["protocol", "result"] = "protocol"

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Start-up and shut-down, once for all revisions: override it, and `yield` while the servers serve."""
        yield

    async def complete(self, asked: Completion, ctx: Context) -> Sequence[str]:
        """How something that is typed may go on, the best first. Override it where the contract has no `enum` for it.

        Args:
            asked: What is typed.
            ctx: The request.
        """
        from .completions import from_enum

        return from_enum(self.catalog, asked)

    def servers(self) -> list[Server]:
        """A server for each revision; they share this object, and its lifespan.

        Raises:
            ValueError: The methods of this class and the contract's document do not belong together.
            ImportError: There are tools, and `mcp-bindgen[contract]` is not installed.
        """
        from .servers import servers

        return servers(self)
