"""Export all that generated code imports, and check which generation of it this runtime can run."""

from typing import TYPE_CHECKING

from .lazy import lazy as lazy
from .lazy import lazy_modules

if TYPE_CHECKING:
    from .era.handshake import HANDSHAKE as HANDSHAKE
    from .era.stateless import STATELESS as STATELESS
    from .model.base import Model as Model
    from .model.scalars import Boolean as Boolean
    from .model.scalars import Constant as Constant
    from .model.scalars import Integer as Integer
    from .model.scalars import Json as Json
    from .model.scalars import Nullable as Nullable
    from .model.scalars import Number as Number
    from .protocol.errors import MethodNotFound as MethodNotFound
    from .protocol.extension import Extension as Extension
    from .protocol.extension import ExtensionResult as ExtensionResult
    from .protocol.extension import ExtensionRoutes as ExtensionRoutes
    from .protocol.extension import MetaKey as MetaKey
    from .protocol.methods import Filter as Filter
    from .protocol.methods import HeaderParams as HeaderParams
    from .protocol.methods import Need as Need
    from .protocol.methods import Notification as Notification
    from .protocol.methods import Request as Request
    from .protocol.methods import Truncation as Truncation
    from .protocol.methods import by_name as by_name
    from .protocol.methods import with_alternatives as with_alternatives
    from .protocol.revision import Dispatcher as Dispatcher
    from .protocol.revision import Revision as Revision
    from .protocol.routing import Returns as Returns
    from .protocol.routing import Route as Route
    from .session.client import Client as Client
    from .session.context import Context as Context
    from .session.server import Server as Server

GENERATION = 4
"""Grows whenever generated code of before could not be run any longer."""


def require(generation: int, package: str, command: str) -> None:
    """Refuse a package that another generation of the generator made.

    Args:
        generation: The generation of the package.
        package: Its import name.
        command: Command that generates it again.

    Raises:
        ImportError: The two do not fit.
    """
    if generation != GENERATION:
        raise ImportError(
            f"{package} was generated for generation {generation} of the mcp-bindgen runtime, this is {GENERATION}; "
            f"run: {command}",
            name=package,
        )


_MODULES = {
    "era.handshake": ["HANDSHAKE"],
    "era.stateless": ["STATELESS"],
    "model.base": ["Model"],
    "model.scalars": ["Boolean", "Constant", "Integer", "Json", "Nullable", "Number"],
    "protocol.errors": ["MethodNotFound"],
    "protocol.extension": ["Extension", "ExtensionResult", "ExtensionRoutes", "MetaKey"],
    "protocol.methods": [
        "Filter",
        "HeaderParams",
        "Need",
        "Notification",
        "Request",
        "Truncation",
        "by_name",
        "with_alternatives",
    ],
    "protocol.revision": ["Dispatcher", "Revision"],
    "protocol.routing": ["Returns", "Route"],
    "session.client": ["Client"],
    "session.context": ["Context"],
    "session.server": ["Server"],
}

__getattr__ = lazy_modules(__name__.rpartition(".")[0], _MODULES, module=__name__)
