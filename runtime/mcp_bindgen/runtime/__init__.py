"""The handwritten part that carries generated bindings. It knows no revision."""

from typing import TYPE_CHECKING

from .lazy import lazy

if TYPE_CHECKING:
    from .cache import ResultCache
    from .calls import Link, Returns
    from .client import Client
    from .connecting import NoConnection, connect
    from .context import Context
    from .dispatcher import Dispatcher, handles
    from .errors import (
        CapabilityMissing,
        ConnectionClosed,
        InvalidParams,
        MethodNotFound,
        ProtocolError,
        RequestTimeout,
        UnexpectedAnswer,
        UnsupportedRevision,
    )
    from .host import BadConfig, Host, NotRouted, Offer
    from .methods import Method, Notification, Request
    from .model import Model
    from .request_state import StateSeal
    from .server import Server, serve
    from .serving import run
    from .session import Options
    from .transport import Transport
    from .values import Boolean, Integer, Json, Nullable, Number

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
        "BadConfig": "host",
        "Boolean": "values",
        "CapabilityMissing": "errors",
        "Client": "client",
        "ConnectionClosed": "errors",
        "Context": "context",
        "Dispatcher": "dispatcher",
        "Host": "host",
        "Integer": "values",
        "InvalidParams": "errors",
        "Json": "values",
        "Link": "calls",
        "Method": "methods",
        "MethodNotFound": "errors",
        "Model": "model",
        "NoConnection": "connecting",
        "NotRouted": "host",
        "Notification": "methods",
        "Nullable": "values",
        "Number": "values",
        "Offer": "host",
        "Options": "session",
        "ProtocolError": "errors",
        "Request": "methods",
        "RequestTimeout": "errors",
        "ResultCache": "cache",
        "Returns": "calls",
        "Server": "server",
        "StateSeal": "request_state",
        "Transport": "transport",
        "UnexpectedAnswer": "errors",
        "UnsupportedRevision": "errors",
        "connect": "connecting",
        "handles": "dispatcher",
        "run": "serving",
        "serve": "server",
    },
)
