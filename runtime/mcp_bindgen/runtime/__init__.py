"""The runtime that carries generated bindings: the names for users. Nothing in the runtime imports this module."""

from typing import TYPE_CHECKING

from .core.lazy import lazy_modules
from .entrypoints import user_bindings

if TYPE_CHECKING:
    from .contract.app import App as App
    from .contract.completions import Completion as Completion
    from .contract.errors import ResourceNotFound as ResourceNotFound, ToolError as ToolError
    from .contract.serving import run as run
    from .core.access import Identity as Identity, InsufficientScope as InsufficientScope
    from .core.errors import AuthorizationError as AuthorizationError, CapabilityMissing as CapabilityMissing
    from .core.errors import ConnectionClosed as ConnectionClosed
    from .core.errors import InvalidParams as InvalidParams, MethodNotFound as MethodNotFound
    from .core.errors import NotAnswered as NotAnswered
    from .core.errors import ProtocolError as ProtocolError, RequestTimeout as RequestTimeout
    from .core.errors import ServerUnavailable as ServerUnavailable
    from .core.errors import SessionRequired as SessionRequired, TooManyRequests as TooManyRequests
    from .core.errors import UnexpectedAnswer as UnexpectedAnswer, UnsupportedRevision as UnsupportedRevision
    from .core.link import Link as Link
    from .core.methods import Method as Method, Notification as Notification, Request as Request
    from .core.model import Model as Model
    from .core.negotiated import Level as Level
    from .core.options import Limits as Limits, Options as Options
    from .core.quarantine import Quarantined as Quarantined
    from .core.revision import Dispatcher as Dispatcher, Revision as Revision
    from .core.routing import Returns as Returns, handles as handles
    from .core.scalars import Boolean as Boolean, Integer as Integer, Json as Json, Nullable as Nullable
    from .core.scalars import Number as Number
    from .core.transport import Transport as Transport
    from .endpoint.authorization import Auth as Auth
    from .endpoint.context import Context as Context
    from .endpoint.questions import Root as Root
    from .endpoint.result_cache import ResultCache as ResultCache
    from .endpoint.server import Server as Server, serve as serve
    from .entrypoints.client import Client as Client
    from .entrypoints.connect import NoConnection as NoConnection, connect as connect
    from .entrypoints.host import BadConfig as BadConfig, Host as Host, NotRouted as NotRouted, Offer as Offer
    from .eras.stateless.request_state import StateSeal as StateSeal

_MODULES = {
    "contract.app": ["App"],
    "contract.completions": ["Completion"],
    "contract.errors": ["ResourceNotFound", "ToolError"],
    "contract.serving": ["run"],
    "core.access": ["Identity", "InsufficientScope"],
    "core.errors": [
        "AuthorizationError",
        "CapabilityMissing",
        "ConnectionClosed",
        "InvalidParams",
        "MethodNotFound",
        "NotAnswered",
        "ProtocolError",
        "RequestTimeout",
        "ServerUnavailable",
        "SessionRequired",
        "TooManyRequests",
        "UnexpectedAnswer",
        "UnsupportedRevision",
    ],
    "core.link": ["Link"],
    "core.methods": ["Method", "Notification", "Request"],
    "core.model": ["Model"],
    "core.negotiated": ["Level"],
    "core.options": ["Limits", "Options"],
    "core.quarantine": ["Quarantined"],
    "core.revision": ["Dispatcher", "Revision"],
    "core.routing": ["Returns", "handles"],
    "core.scalars": ["Boolean", "Integer", "Json", "Nullable", "Number"],
    "core.transport": ["Transport"],
    "endpoint.authorization": ["Auth"],
    "endpoint.context": ["Context"],
    "endpoint.questions": ["Root"],
    "endpoint.result_cache": ["ResultCache"],
    "endpoint.server": ["Server", "serve"],
    "entrypoints.client": ["Client"],
    "entrypoints.connect": ["NoConnection", "connect"],
    "entrypoints.host": ["BadConfig", "Host", "NotRouted", "Offer"],
    "eras.stateless.request_state": ["StateSeal"],
}

user_bindings.install()

__getattr__ = lazy_modules(__name__, _MODULES)
