"""All that generated code imports, and the generation of it that this runtime can run."""

from typing import TYPE_CHECKING

from .core.lazy import lazy

if TYPE_CHECKING:
    from .core.errors import MethodNotFound
    from .core.methods import HeaderParams, Notification, Request, by_name
    from .core.model import Model
    from .core.revision import Dispatcher, Revision
    from .core.routing import Returns, Route
    from .core.scalars import Boolean, Constant, Integer, Json, Nullable, Number
    from .endpoint.context import Context
    from .endpoint.server import Server
    from .entrypoints.client import Client
    from .eras.handshake import HANDSHAKE
    from .eras.stateless.era import STATELESS

__all__ = [
    "HANDSHAKE",
    "STATELESS",
    "Boolean",
    "Client",
    "Constant",
    "Context",
    "Dispatcher",
    "HeaderParams",
    "Integer",
    "Json",
    "MethodNotFound",
    "Model",
    "Notification",
    "Nullable",
    "Number",
    "Request",
    "Returns",
    "Revision",
    "Route",
    "Server",
    "by_name",
    "lazy",
    "require",
]

GENERATION = 1
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


__getattr__ = lazy(
    __name__.rpartition(".")[0],
    {
        "HANDSHAKE": "eras.handshake",
        "STATELESS": "eras.stateless.era",
        "Boolean": "core.scalars",
        "Client": "entrypoints.client",
        "Constant": "core.scalars",
        "Context": "endpoint.context",
        "Dispatcher": "core.revision",
        "HeaderParams": "core.methods",
        "Integer": "core.scalars",
        "Json": "core.scalars",
        "MethodNotFound": "core.errors",
        "Model": "core.model",
        "Notification": "core.methods",
        "Nullable": "core.scalars",
        "Number": "core.scalars",
        "Request": "core.methods",
        "Returns": "core.routing",
        "Revision": "core.revision",
        "Route": "core.routing",
        "Server": "endpoint.server",
        "by_name": "core.methods",
    },
    module=__name__,
)
