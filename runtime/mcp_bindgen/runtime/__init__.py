"""The handwritten part that carries generated bindings. It knows no revision."""

from typing import TYPE_CHECKING

from .lazy import lazy

if TYPE_CHECKING:
    from .dispatcher import Dispatcher
    from .errors import InvalidParams, MethodNotFound, ProtocolError, UnexpectedAnswer
    from .methods import Method, Notification, Request
    from .model import Model
    from .peers import Client, Context, Link, Returns, Server
    from .values import Boolean, Integer, Json, Nullable, Number

__all__ = [
    "Boolean",
    "Client",
    "Context",
    "Dispatcher",
    "Integer",
    "InvalidParams",
    "Json",
    "Link",
    "Method",
    "MethodNotFound",
    "Model",
    "Notification",
    "Nullable",
    "Number",
    "ProtocolError",
    "Request",
    "Returns",
    "Server",
    "UnexpectedAnswer",
]

__getattr__ = lazy(
    __name__,
    {
        "Boolean": "values",
        "Client": "peers",
        "Context": "peers",
        "Dispatcher": "dispatcher",
        "Integer": "values",
        "InvalidParams": "errors",
        "Json": "values",
        "Link": "peers",
        "Method": "methods",
        "MethodNotFound": "errors",
        "Model": "model",
        "Notification": "methods",
        "Nullable": "values",
        "Number": "values",
        "ProtocolError": "errors",
        "Request": "methods",
        "Returns": "peers",
        "Server": "peers",
        "UnexpectedAnswer": "errors",
    },
)
