"""Authorization over HTTP (MCP, "Authorization"; OAuth 2.1), for servers and clients. Imports `runtime`.

Needs the extra `auth`.
"""

from typing import TYPE_CHECKING

from mcp_bindgen.runtime.lazy import lazy_modules

if TYPE_CHECKING:
    from .client.bearer import Bearer as Bearer
    from .client.clients import ClientSecret as ClientSecret
    from .client.clients import KnownClient as KnownClient
    from .client.clients import client_metadata as client_metadata
    from .client.login import Browser as Browser
    from .client.login import DeviceCode as DeviceCode
    from .client.login import Headless as Headless
    from .client.login import Manual as Manual
    from .client.machines import ClientCredentials as ClientCredentials
    from .client.machines import EnterpriseManaged as EnterpriseManaged
    from .client.machines import PrivateKeyJwt as PrivateKeyJwt
    from .client.machines import WorkloadIdentity as WorkloadIdentity
    from .client.oauth import OAuth as OAuth
    from .client.tokens import ServerQuirks as ServerQuirks
    from .resource_server.dpop import MemoryReplayCache as MemoryReplayCache
    from .resource_server.dpop import Nonces as Nonces
    from .resource_server.dpop import ReplayCache as ReplayCache
    from .resource_server.issuers import Introspection as Introspection
    from .resource_server.issuers import JwtVerifier as JwtVerifier
    from .resource_server.server import ResourceServer as ResourceServer
    from .resource_server.verifier import InvalidToken as InvalidToken
    from .resource_server.verifier import StaticTokens as StaticTokens
    from .resource_server.verifier import TokenVerifier as TokenVerifier
    from .resource_server.verifier import VerifierUnavailable as VerifierUnavailable
    from mcp_bindgen.runtime.protocol.access import Identity as Identity
    from mcp_bindgen.runtime.protocol.access import InsufficientScope as InsufficientScope
    from mcp_bindgen.runtime.protocol.errors import AuthorizationError as AuthorizationError
    from mcp_bindgen.runtime.session.authorization import Auth as Auth

_MODULES = {
    "client.bearer": ["Bearer"],
    "client.clients": ["ClientSecret", "KnownClient", "client_metadata"],
    "client.login": ["Browser", "DeviceCode", "Headless", "Manual"],
    "client.machines": ["ClientCredentials", "EnterpriseManaged", "PrivateKeyJwt", "WorkloadIdentity"],
    "client.oauth": ["OAuth"],
    "client.tokens": ["ServerQuirks"],
    "resource_server.dpop": ["MemoryReplayCache", "Nonces", "ReplayCache"],
    "resource_server.issuers": ["Introspection", "JwtVerifier"],
    "resource_server.server": ["ResourceServer"],
    "resource_server.verifier": ["InvalidToken", "StaticTokens", "TokenVerifier", "VerifierUnavailable"],
    ".runtime.protocol.access": ["Identity", "InsufficientScope"],
    ".runtime.protocol.errors": ["AuthorizationError"],
    ".runtime.session.authorization": ["Auth"],
}

__getattr__ = lazy_modules(__name__, _MODULES)
