"""The resource server's part: verify access tokens, say what they allow, and tell clients where to get one.

A `ResourceServer` is the gate of an HTTP endpoint. It asks its verifiers, one for each issuer or kind of token, and
challenges whom it refuses. What is checked of tokens and proofs is free of I/O; `JwtVerifier` and `Introspection` drive
it.
"""

from typing import TYPE_CHECKING

from ...core.lazy import lazy_modules

if TYPE_CHECKING:
    from .dpop import Nonces as Nonces
    from .introspection import Introspection as Introspection
    from .jwt_verifier import JwtVerifier as JwtVerifier
    from .replay import MemoryReplayCache as MemoryReplayCache, ReplayCache as ReplayCache
    from .resource_server import ResourceServer as ResourceServer
    from .verifier import InvalidToken as InvalidToken, StaticTokens as StaticTokens
    from .verifier import TokenVerifier as TokenVerifier, VerifierUnavailable as VerifierUnavailable

_MODULES = {
    "dpop": ["Nonces"],
    "introspection": ["Introspection"],
    "jwt_verifier": ["JwtVerifier"],
    "replay": ["MemoryReplayCache", "ReplayCache"],
    "resource_server": ["ResourceServer"],
    "verifier": ["InvalidToken", "StaticTokens", "TokenVerifier", "VerifierUnavailable"],
}

__getattr__ = lazy_modules(__name__, _MODULES)
