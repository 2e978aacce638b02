from .lazy import lazy as lazy
from .model.base import Model as Model
from .model.base import complete as complete
from .model.scalars import Boolean as Boolean
from .model.scalars import Constant as Constant
from .model.scalars import Integer as Integer
from .model.scalars import Json as Json
from .model.scalars import Nullable as Nullable
from .model.scalars import Number as Number
from .protocol.errors import MethodNotFound as MethodNotFound
from .protocol.extension import ExtensionResult as ExtensionResult
from .protocol.methods import Filter as Filter
from .protocol.methods import HeaderParams as HeaderParams
from .protocol.methods import Need as Need
from .protocol.methods import Notification as Notification
from .protocol.methods import RequestMethod as RequestMethod
from .protocol.methods import Truncation as Truncation
from .protocol.methods import by_name as by_name
from .protocol.methods import with_alternatives as with_alternatives
from .protocol.revision import HANDSHAKE as HANDSHAKE
from .protocol.revision import STATELESS as STATELESS
from .protocol.revision import Dispatcher as Dispatcher
from .protocol.revision import Revision as Revision
from .protocol.routing import Returns as Returns
from .protocol.routing import Route as Route
from .session.client import Client as Client
from .session.context import Context as Context
from .session.server import Server as Server

GENERATION: int

def require(generation: int, package: str, command: str) -> None: ...
