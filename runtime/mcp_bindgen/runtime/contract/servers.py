"""The servers of a contract, one for each revision."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..endpoint.server import Server
from .completions import Completions
from .feature import Feature
from .promises import Promises
from .prompts import Prompts
from .resources import Resources
from .tools import Tools

if TYPE_CHECKING:
    from .base import Contract

FEATURES: tuple[type[Feature], ...] = (Tools, Prompts, Resources, Completions)


class Shared:
    """A lifespan that several servers have in common: the first to start enters it.

    Args:
        lifespan: Makes it.
    """

    def __init__(self, lifespan: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        self._lifespan = lifespan
        self._entered = False

    @asynccontextmanager
    async def __call__(self) -> AsyncGenerator[None]:
        """Enters the lifespan, unless another server has."""
        if self._entered:
            yield
            return
        self._entered = True
        try:
            async with self._lifespan():
                yield
        finally:
            self._entered = False


def servers(contract: Contract) -> list[Server]:
    """A server for each revision of a contract, which offers what is in it and nothing else; see `Contract.servers`."""
    promises = Promises(contract)
    features = tuple(feature for feature in FEATURES if feature.is_in(promises))
    lifespan = Shared(contract.lifespan)
    return [_server(bindings, features, promises, lifespan) for bindings in contract.revisions]


def _server(bindings: ModuleType, features: tuple[type[Feature], ...], promises: Promises, lifespan: Shared) -> Server:
    contract = promises.contract
    server: Any = _kind(type(contract), bindings, features)()
    server.promises = promises
    server.lifespan = lifespan
    said = contract.info or promises.catalog.info or {"name": type(contract).__name__, "version": "0"}
    server.info = bindings.types.Implementation.model_validate(said)
    server.instructions = promises.catalog.instructions if contract.instructions is None else contract.instructions
    made: Server = server
    return made


@cache
def _kind(contract: type, bindings: ModuleType, features: tuple[type[Feature], ...]) -> type[Any]:
    """The class of a server: capabilities follow from the features among its bases."""
    return type(contract.__name__, (*features, bindings.Server), {"__doc__": contract.__doc__})
