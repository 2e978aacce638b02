"""The handwritten part that carries generated bindings. It knows no revision."""

from typing import TYPE_CHECKING

from .core.lazy import lazy

if TYPE_CHECKING:
    from .core.errors import (
        CapabilityMissing,
        ConnectionClosed,
        InvalidParams,
        MethodNotFound,
        ProtocolError,
        RequestTimeout,
        UnexpectedAnswer,
        UnsupportedRevision,
    )
    from .core.link import Link
    from .core.methods import Method, Notification, Request
    from .core.model import Model
    from .core.options import Options
    from .core.revision import Dispatcher, Revision
    from .core.routing import Returns, handles
    from .core.scalars import Boolean, Integer, Json, Nullable, Number
    from .core.transport import Transport
    from .endpoint.context import Context
    from .endpoint.result_cache import ResultCache
    from .endpoint.server import Server, serve
    from .entrypoints.client import Client
    from .entrypoints.connect import NoConnection, connect
    from .entrypoints.host import BadConfig, Host, NotRouted, Offer
    from .entrypoints.run import run
    from .eras.stateless.request_state import StateSeal

__all__ = [
    "BadConfig",
    "Boolean",
    "CapabilityMissing",
    "Client",
    "ConnectionClosed",
    "Context",
    "Dispatcher",
    "Host",
    "Integer",
    "InvalidParams",
    "Json",
    "Link",
    "Method",
    "MethodNotFound",
    "Model",
    "NoConnection",
    "NotRouted",
    "Notification",
    "Nullable",
    "Number",
    "Offer",
    "Options",
    "ProtocolError",
    "Request",
    "RequestTimeout",
    "ResultCache",
    "Returns",
    "Revision",
    "Server",
    "StateSeal",
    "Transport",
    "UnexpectedAnswer",
    "UnsupportedRevision",
    "connect",
    "handles",
    "run",
    "serve",
]

__getattr__ = lazy(
    __name__,
    {
        "BadConfig": "entrypoints.host",
        "Boolean": "core.scalars",
        "CapabilityMissing": "core.errors",
        "Client": "entrypoints.client",
        "ConnectionClosed": "core.errors",
        "Context": "endpoint.context",
        "Dispatcher": "core.revision",
        "Host": "entrypoints.host",
        "Integer": "core.scalars",
        "InvalidParams": "core.errors",
        "Json": "core.scalars",
        "Link": "core.link",
        "Method": "core.methods",
        "MethodNotFound": "core.errors",
        "Model": "core.model",
        "NoConnection": "entrypoints.connect",
        "NotRouted": "entrypoints.host",
        "Notification": "core.methods",
        "Nullable": "core.scalars",
        "Number": "core.scalars",
        "Offer": "entrypoints.host",
        "Options": "core.options",
        "ProtocolError": "core.errors",
        "Request": "core.methods",
        "RequestTimeout": "core.errors",
        "ResultCache": "endpoint.result_cache",
        "Revision": "core.revision",
        "Returns": "core.routing",
        "Server": "endpoint.server",
        "StateSeal": "eras.stateless.request_state",
        "Transport": "core.transport",
        "UnexpectedAnswer": "core.errors",
        "UnsupportedRevision": "core.errors",
        "connect": "entrypoints.connect",
        "handles": "core.routing",
        "run": "entrypoints.run",
        "serve": "endpoint.server",
    },
)
