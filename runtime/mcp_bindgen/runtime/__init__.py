"""Kernel of the runtime: the names that servers and clients of generated bindings use."""

from typing import TYPE_CHECKING

from .lazy import lazy_modules

if TYPE_CHECKING:
    from .bindings import install as install
    from .connecting import NoConnection as NoConnection
    from .connecting import connect as connect
    from .entry_points import Address as Address
    from .session.rounds import RequestStateSigner as RequestStateSigner
    from .model.base import Model as Model
    from .model.scalars import Boolean as Boolean
    from .model.scalars import Integer as Integer
    from .model.scalars import Json as Json
    from .model.scalars import Nullable as Nullable
    from .model.scalars import Number as Number
    from .protocol.access import Identity as Identity
    from .protocol.access import InsufficientScope as InsufficientScope
    from .protocol.errors import AuthorizationError as AuthorizationError
    from .protocol.errors import CapabilityMissing as CapabilityMissing
    from .protocol.errors import ConnectionClosed as ConnectionClosed
    from .protocol.errors import InvalidParams as InvalidParams
    from .protocol.errors import MethodNotFound as MethodNotFound
    from .protocol.errors import NotAnswered as NotAnswered
    from .protocol.errors import ProtocolError as ProtocolError
    from .protocol.errors import RequestTimeout as RequestTimeout
    from .protocol.errors import ServerUnavailable as ServerUnavailable
    from .protocol.errors import SessionRequired as SessionRequired
    from .protocol.errors import TooManyRequests as TooManyRequests
    from .protocol.errors import UnexpectedAnswer as UnexpectedAnswer
    from .protocol.errors import UnsupportedRevision as UnsupportedRevision
    from .protocol.invalid_items import InvalidItem as InvalidItem
    from .protocol.request_scope import Link as Link
    from .protocol.methods import Method as Method
    from .protocol.methods import Notification as Notification
    from .protocol.methods import Request as Request
    from .protocol.request_scope import Level as Level
    from .protocol.limits import Limits as Limits
    from .protocol.limits import Options as Options
    from .protocol.revision import Dispatcher as Dispatcher
    from .protocol.revision import Revision as Revision
    from .protocol.routing import Returns as Returns
    from .protocol.routing import handles as handles
    from .protocol.transport import Transport as Transport
    from .serving import run as run
    from .session.authorization import Auth as Auth
    from .session.client import Client as Client
    from .session.context import Context as Context
    from .session.questions import Root as Root
    from .session.result_cache import ResultCache as ResultCache
    from .session.server import Server as Server
    from .session.server import serve as serve

_MODULES = {
    "bindings": ["install"],
    "connecting": ["NoConnection", "connect"],
    "entry_points": ["Address"],
    "session.rounds": ["RequestStateSigner"],
    "model.base": ["Model"],
    "model.scalars": ["Boolean", "Integer", "Json", "Nullable", "Number"],
    "protocol.access": ["Identity", "InsufficientScope"],
    "protocol.errors": [
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
    "protocol.invalid_items": ["InvalidItem"],
    "protocol.methods": ["Method", "Notification", "Request"],
    "protocol.request_scope": ["Level", "Link"],
    "protocol.limits": ["Limits", "Options"],
    "protocol.revision": ["Dispatcher", "Revision"],
    "protocol.routing": ["Returns", "handles"],
    "protocol.transport": ["Transport"],
    "serving": ["run"],
    "session.authorization": ["Auth"],
    "session.client": ["Client"],
    "session.context": ["Context"],
    "session.questions": ["Root"],
    "session.result_cache": ["ResultCache"],
    "session.server": ["Server", "serve"],
}

__getattr__ = lazy_modules(__name__, _MODULES)
