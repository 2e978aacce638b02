"""Export all that generated code imports, and check which generation of it this runtime can run."""

from typing import TYPE_CHECKING

from .core.lazy import lazy as lazy
from .core.lazy import lazy_modules

if TYPE_CHECKING:
    from .core.errors import MethodNotFound as MethodNotFound
    from .core.extension import Extension as Extension
    from .core.extension import ExtensionResult as ExtensionResult
    from .core.extension import ExtensionRoutes as ExtensionRoutes
    from .core.meta_keys import MetaKey as MetaKey
    from .core.methods import Filter as Filter
    from .core.methods import HeaderParams as HeaderParams
    from .core.methods import Need as Need
    from .core.methods import Notification as Notification
    from .core.methods import Request as Request
    from .core.methods import Truncation as Truncation
    from .core.methods import by_name as by_name
    from .core.methods import with_alternatives as with_alternatives
    from .core.model import Model as Model
    from .core.revision import Dispatcher as Dispatcher
    from .core.revision import Revision as Revision
    from .core.routing import Returns as Returns
    from .core.routing import Route as Route
    from .core.scalars import Boolean as Boolean
    from .core.scalars import Constant as Constant
    from .core.scalars import Integer as Integer
    from .core.scalars import Json as Json
    from .core.scalars import Nullable as Nullable
    from .core.scalars import Number as Number
    from .endpoint.context import Context as Context
    from .endpoint.server import Server as Server
    from .entrypoints.client import Client as Client
    from .eras.handshake import HANDSHAKE as HANDSHAKE
    from .eras.stateless.era import STATELESS as STATELESS

GENERATION = 3
"""Grows whenever generated code of before could not be run any longer."""


def require(generation: int, package: str, command: str) -> None:
    """Refuse a package that another generation of the generator made.

    Args:
        generation: The generation of the package.
        package: Its import name.
        command: What makes it anew.

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
    "core.errors": ["MethodNotFound"],
    "core.extension": ["Extension", "ExtensionResult", "ExtensionRoutes"],
    "core.meta_keys": ["MetaKey"],
    "core.methods": [
        "Filter",
        "HeaderParams",
        "Need",
        "Notification",
        "Request",
        "Truncation",
        "by_name",
        "with_alternatives",
    ],
    "core.model": ["Model"],
    "core.revision": ["Dispatcher", "Revision"],
    "core.routing": ["Returns", "Route"],
    "core.scalars": ["Boolean", "Constant", "Integer", "Json", "Nullable", "Number"],
    "endpoint.context": ["Context"],
    "endpoint.server": ["Server"],
    "entrypoints.client": ["Client"],
    "eras.handshake": ["HANDSHAKE"],
    "eras.stateless.era": ["STATELESS"],
}

__getattr__ = lazy_modules(__name__.rpartition(".")[0], _MODULES, module=__name__)
