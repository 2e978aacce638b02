"""An authorization server from the viewpoint of a resource server: keys, metadata, tokens, introspection, proofs.

It signs any token that a test requests, including invalid tokens.
"""

from __future__ import annotations

import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import parse_qs
from uuid import uuid4

from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from mcp_bindgen.auth.dpop import token_hash


class At(NamedTuple):
    """A time in seconds from now."""

    seconds: float


def encoded(value: Any) -> bytes:
    """Return a JSON value or bytes as a part of a JWS."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(data).rstrip(b"=")


def signed(header: dict[str, Any], payload: Any, key: Any) -> str:
    """Return a compact JWS, signed with the algorithm of its header; a key in bytes is the secret of an HMAC."""
    text = encoded(header) + b"." + encoded(payload)
    if isinstance(key, bytes):
        signature = hmac.digest(key, text, f"sha{header['alg'][2:]}")
    else:
        signature = JWSRegistry.algorithms[header["alg"]].sign(text, key)
    return (text + b"." + encoded(signature)).decode()


class Issuer:
    """An issuer with an RSA key, `k1`; tests add other keys.

    Attributes:
        url: Issuer identifier, valid while it listens.
        fetched: Number of requests for its keys.
        asked: Number of introspection requests.
        is_down: True if every response is 500.
        known: Token -> introspection response.
    """

    def __init__(self, url: str = "http://127.0.0.1:1") -> None:
        self.url = url
        self.key = RSAKey.generate_key(2048)
        self.keys: dict[str, Key] = {"k1": self.key}
        self.fetched = self.asked = 0
        self.is_down = False
        self.known: dict[str, dict[str, Any]] = {}
        self.changes: dict[str, Any] = {}

    def jwks(self) -> dict[str, Any]:
        """Return the JWK Set."""
        return {"keys": [{**key.as_dict(private=False), "kid": id_} for id_, key in self.keys.items()]}

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/jwks",
            "introspection_endpoint": f"{self.url}/introspect",
            **self.changes,
        }

    def claims(self, resource: str, **changes: Any) -> dict[str, Any]:
        """Return the claims of a valid access token with changes; the value `...` removes a claim."""
        exactly = time.time()
        now = int(exactly)
        claims = {
            "iss": self.url,
            "sub": "alice",
            "client_id": "client",
            "aud": resource,
            "iat": now,
            "exp": now + 600,
            "jti": uuid4().hex,
            "scope": "mcp:read",
            **changes,
        }
        times = {name: exactly + value.seconds for name, value in claims.items() if isinstance(value, At)}
        return {name: value for name, value in (claims | times).items() if value is not ...}

    def token(self, resource: str, *, header: dict[str, Any] | None = None, key: Any = None, **changes: Any) -> str:
        """Return an access token; `header`, `key` and `changes` make it differ from a valid one."""
        whole = {"typ": "at+jwt", "alg": "RS256", "kid": "k1", **(header or {})}
        whole = {name: value for name, value in whole.items() if value is not ...}
        return signed(whole, self.claims(resource, **changes), key or self.key)

    def _answer(self, path: str, form: dict[str, list[str]], authorization: str | None) -> tuple[int, Any]:
        if self.is_down:
            return 500, {}
        if path == "/.well-known/oauth-authorization-server":
            return 200, self.metadata()
        if path == "/jwks":
            self.fetched += 1
            return 200, self.jwks()
        if path == "/introspect":
            self.asked += 1
            if authorization != "Basic bWNwOnMlM0FlY3JldA==":  # mcp, s:ecret, form-encoded
                return 401, {}
            return 200, self.known.get(form["token"][0], {"active": False})
        return 404, {}

    @contextmanager
    def listening(self) -> Iterator[Issuer]:
        """Listen on this machine, and set the URL."""
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._reply(b"")

            def do_POST(self) -> None:
                self._reply(self.rfile.read(int(self.headers["content-length"])))

            def _reply(self, body: bytes) -> None:
                status, document = issuer._answer(self.path, parse_qs(body.decode()), self.headers.get("authorization"))
                data = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            self.url = f"http://127.0.0.1:{server.server_address[1]}"
            thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()


class Prover:
    """A client with a DPoP key.

    Attributes:
        key: The key.
        thumbprint: The `cnf.jkt` of tokens that are bound to the key.
    """

    def __init__(self) -> None:
        self.key = ECKey.generate_key("P-256")
        self.thumbprint = self.key.thumbprint()

    def proof(
        self,
        url: str,
        token: str,
        *,
        method: str = "POST",
        header: dict[str, Any] | None = None,
        key: Any = None,
        **changes: Any,
    ) -> str:
        """Return a DPoP proof for a request; `header`, `key` and `changes` make it differ from a valid one."""
        public = {"jwk": self.key.as_dict(private=False)}
        whole = {"typ": "dpop+jwt", "alg": "ES256", **public, **(header or {})}
        claims = {
            "jti": uuid4().hex,
            "htm": method,
            "htu": url,
            "iat": int(time.time()),
            "ath": token_hash(token),
            **changes,
        }
        return signed(
            {name: value for name, value in whole.items() if value is not ...},
            {name: value for name, value in claims.items() if value is not ...},
            key or self.key,
        )


def other_keys() -> dict[str, tuple[str, Key]]:
    """Return algorithm -> (key id, key) for the algorithms that `k1` does not use."""
    edwards = OKPKey.generate_key("Ed25519")
    return {
        "ES256": ("p256", ECKey.generate_key("P-256")),
        "ES384": ("p384", ECKey.generate_key("P-384")),
        "ES512": ("p521", ECKey.generate_key("P-521")),
        "EdDSA": ("ed", edwards),
        "Ed25519": ("ed", edwards),
    }
