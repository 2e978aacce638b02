"""An authorization server and a protected MCP server on loopback; tests can make either of them misbehave.

Both behave correctly unless a test overrides a response. Access tokens are `at-N`, refresh tokens `rt-N`. A refresh
token can be used once. Using it again revokes all tokens of the same login, as real servers with rotation do.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http.client import HTTPConnection
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from anyio import sleep, to_thread
from joserfc import jwk, jwt

from mcp_bindgen.auth import Manual, OAuth
from mcp_bindgen.auth.dpop import token_hash
from mcp_bindgen.auth.fetch import Fetcher
from mcp_bindgen.auth.store import MemoryStore, Store
from mcp_bindgen.http.client.transport import http
from mcp_bindgen.runtime.protocol.errors import AuthorizationError
from mcp_bindgen.runtime.protocol.transport import Lost
from tests.harness.scripted_http_server import Heard, Script, ask, request, serving

CALLBACK = "http://127.0.0.1:7777/callback"
SECRET = "s3cr3t-of-the-client"

Edit = Callable[[dict[str, Any]], Any]


class World:
    """An authorization server and an MCP server.

    Attributes:
        mcp: The MCP server.
        issuing: The authorization server.
        edit_resource: Hook that receives the protected resource metadata and returns the metadata to send.
        edit_server: The same hook for the metadata of the authorization server.
        edit_response: Hook for the parameters of the authorization response.
        edit_token: Hook for the token response.
        scopes_of: Tool name -> scopes that a call needs.
        lifetime: Lifetime of access tokens in seconds.
        log: Requests to either server, as `GET /path`, and token requests.
    """

    def __init__(self) -> None:
        self.mcp: Script
        self.issuing: Script
        self.edit_resource: Edit = lambda document: document
        self.edit_server: Edit = lambda document: document
        self.edit_response: Edit = lambda query: query
        self.edit_token: Edit = lambda answer: answer
        self.answer_mcp: Callable[[Heard], Any] | None = None
        self.answer_token: Callable[[dict[str, str], Heard], tuple[int, dict[str, Any]] | None] = lambda form, heard: (
            None
        )
        self.challenge: dict[str, str] = {}
        self.scopes_of: dict[str, set[str]] = {}
        self.lifetime: float | None = 3600
        self.log: list[str] = []
        self.forms: list[dict[str, str]] = []
        self.queries: list[dict[str, str]] = []
        self.tokens: dict[str, dict[str, Any]] = {}
        self.refreshes: dict[str, dict[str, Any]] = {}
        self.families: set[int] = set()
        self.registered: list[dict[str, Any]] = []
        self.nonce: str | None = None
        self._count = 0
        self._codes: dict[str, dict[str, str]] = {}
        self._jtis: set[str] = set()

    @property
    def url(self) -> str:
        """URL of the MCP server."""
        return self.mcp.url

    @property
    def issuer(self) -> str:
        """Issuer identifier."""
        return self.issuing.url.removesuffix("/mcp")

    @property
    def metadata_url(self) -> str:
        """URL of the protected resource metadata."""
        return self.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")

    def counts(self, line: str) -> int:
        """Return how often a line occurs in the log."""
        return sum(one.startswith(line) for one in self.log)

    async def let_in(self, auth: Any, **options: Any) -> str:
        """Send a request that the MCP server accepts; return the access token that the client used."""
        (token,) = await call(self.url, auth, **options)
        assert str(token).startswith("at-"), token
        return str(token)

    async def denied(self, auth: Any, why: str = "", **options: Any) -> AuthorizationError:
        """Send a request for which the client gets no token; return the error, whose text contains `why`."""
        (error,) = await call(self.url, auth, **options)
        assert isinstance(error, AuthorizationError), error
        assert why in str(error)
        return error

    # --- the authorization server ---------------------------------------------------------------------------------

    async def play_issuing(self, heard: Heard) -> None:
        self.log.append(f"{heard.method} {heard.path}")
        match heard.path:
            case "/.well-known/oauth-authorization-server":
                await self._send(heard, self.edit_server(self._server()))
            case "/authorize":
                await self._authorize(heard)
            case "/register":
                wanted = json.loads(heard.body)
                self.registered.append(wanted)
                await heard.json(
                    {"client_id": f"client-{len(self.registered)}", "client_secret": SECRET, **wanted}, 201
                )
            case "/token":
                await self._token(heard)
            case "/revoke":
                form = dict(parse_qsl(heard.body.decode()))
                self.forms.append(form)
                self.tokens.pop(form["token"], None)
                self.refreshes.pop(form["token"], None)
                await heard.end(200)
            case _:
                await heard.end(404)

    def _server(self) -> dict[str, Any]:
        base = self.issuer
        return {
            "issuer": base,
            "authorization_endpoint": f"{base}/authorize",
            "token_endpoint": f"{base}/token",
            "registration_endpoint": f"{base}/register",
            "revocation_endpoint": f"{base}/revoke",
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "token_endpoint_auth_methods_supported": ["client_secret_post", "none"],
            "dpop_signing_alg_values_supported": ["ES256"],
        }

    async def _authorize(self, heard: Heard) -> None:
        query = dict(parse_qsl(heard.query))
        self.queries.append(query)
        self._count += 1
        code = f"code-{self._count}"
        self._codes[code] = query
        back = self.edit_response({"code": code, "state": query["state"], "iss": self.issuer})
        shown = back if isinstance(back, str) else f"{query['redirect_uri']}?{urlencode(back)}"
        await heard.end(302, location=shown)

    async def _token(self, heard: Heard) -> None:
        form = dict(parse_qsl(heard.body.decode()))
        self.forms.append(form)
        self.log.append(f"token {form.get('grant_type')}")
        special = self.answer_token(form, heard)
        if special is not None:
            await heard.json(special[1], special[0])
            return
        proof = self.proof(heard, "POST", f"{self.issuer}/token", None)
        if proof is not None and self.nonce is not None and proof.get("nonce") != self.nonce:
            await heard.json({"error": "use_dpop_nonce"}, 400, dpop_nonce=self.nonce)
            return
        jkt = proof["jkt"] if proof is not None else None
        match form.get("grant_type"):
            case "authorization_code":
                query = self._codes.pop(form["code"], {})
                digest = hashlib.sha256(form["code_verifier"].encode()).digest()
                if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != query.get("code_challenge"):
                    await heard.json({"error": "invalid_grant"}, 400)
                    return
                self._count += 1
                self.families.add(self._count)
                await heard.json(self._issue(query.get("scope", ""), self._count, jkt, form.get("client_id")))
            case "refresh_token":
                used = self.refreshes.get(form["refresh_token"])
                if used is None or used["used"] or used["family"] not in self.families or used["jkt"] != jkt:
                    if used is not None:
                        self.families.discard(used["family"])
                    await heard.json({"error": "invalid_grant"}, 400)
                    return
                used["used"] = True
                await heard.json(self._issue(used["scope"], used["family"], jkt, form.get("client_id")))
            case "client_credentials" | "urn:ietf:params:oauth:grant-type:jwt-bearer":
                self._count += 1
                self.families.add(self._count)
                issued = self._issue(form.get("scope", ""), self._count, jkt, form.get("client_id"))
                issued.pop("refresh_token")
                await heard.json(issued)
            case _:
                await heard.json({"error": "unsupported_grant_type"}, 400)

    def _issue(self, scope: str, family: int, jkt: str | None, client: str | None) -> dict[str, Any]:
        self._count += 1
        token, refresh = f"at-{self._count}-of-{family}", f"rt-{self._count}-of-{family}"
        self.tokens[token] = {"scope": scope, "family": family, "jkt": jkt, "client": client}
        self.refreshes[refresh] = {"scope": scope, "family": family, "used": False, "jkt": jkt}
        answer: dict[str, Any] = {"access_token": token, "refresh_token": refresh, "scope": scope}
        answer["token_type"] = "DPoP" if jkt else "Bearer"
        if self.lifetime is not None:
            answer["expires_in"] = self.lifetime
        edited: dict[str, Any] = self.edit_token(answer)
        return edited

    def proof(self, heard: Heard, method: str, url: str, token: str | None) -> dict[str, Any] | None:
        """Return the claims of a valid DPoP proof and its key thumbprint, or None if the request has no proof."""
        text = heard.headers.get("dpop")
        if text is None:
            return None
        header = json.loads(base64.urlsafe_b64decode(text.split(".")[0] + "=="))
        assert "d" not in header["jwk"]
        claims = dict(jwt.decode(text, jwk.import_key(header["jwk"]), algorithms=["ES256"]).claims)
        assert header["typ"] == "dpop+jwt"
        assert (claims["htm"], claims["htu"]) == (method, url)
        assert claims.get("ath") == (token_hash(token) if token else None)
        assert claims["jti"] not in self._jtis
        self._jtis.add(claims["jti"])
        return {**claims, "jkt": jwk.import_key(header["jwk"]).thumbprint()}

    # --- the MCP server -------------------------------------------------------------------------------------------

    async def play_mcp(self, heard: Heard) -> None:
        self.log.append(f"{heard.method} {heard.path}")
        if heard.path.startswith("/.well-known/oauth-protected-resource"):
            document = {"resource": self.url, "authorization_servers": [self.issuer]}
            is_ours = heard.path.endswith("/mcp")
            await (self._send(heard, self.edit_resource(document)) if is_ours else heard.end(404))
        elif heard.path != "/mcp":
            await heard.end(404)
        elif self.answer_mcp is not None:
            await self.answer_mcp(heard)
        else:
            await self.serve(heard)

    async def serve(self, heard: Heard) -> None:
        """Answer a message as a correct server does."""
        scheme, _, token = heard.headers.get("authorization", "").partition(" ")
        known = self.tokens.get(token)
        if known is None or known["family"] not in self.families:
            await self.refuse(heard, 401)
            return
        if known["jkt"] is not None:
            proof = self.proof(heard, heard.method, self.url, token)
            assert (scheme, proof is not None and proof["jkt"]) == ("DPoP", known["jkt"])
            if self.nonce is not None and proof is not None and proof.get("nonce") != self.nonce:
                shown = f'DPoP error="use_dpop_nonce", resource_metadata="{self.metadata_url}"'
                await heard.end(401, www_authenticate=shown, dpop_nonce=self.nonce)
                return
        else:
            assert scheme == "Bearer"
        tool = json.loads(heard.body).get("method", "") if heard.method == "POST" else ""
        missing = self.scopes_of.get(tool, set()) - set(known["scope"].split())
        if missing:
            await self.refuse(heard, 403, error="insufficient_scope", scope=" ".join(sorted(missing)))
        else:
            await heard.result(token)

    async def refuse(self, heard: Heard, status: int, **parameters: str) -> None:
        """Answer with a status and a challenge."""
        given = {"resource_metadata": self.metadata_url, **self.challenge, **parameters}
        shown = ", ".join(f'{name}="{value}"' for name, value in given.items() if value)
        await heard.end(status, www_authenticate=f"Bearer {shown}")

    async def _send(self, heard: Heard, document: Any) -> None:
        """Send a JSON document, or an empty response if `document` is a status."""
        if isinstance(document, int):
            await heard.end(document)
        else:
            await heard.json(document)


W = TypeVar("W", bound="World")


@asynccontextmanager
async def playing(made: W) -> AsyncGenerator[W]:
    """Run both servers."""
    async with serving(made.play_issuing) as issuing, serving(made.play_mcp) as mcp:
        made.issuing, made.mcp = issuing, mcp
        yield made


def world() -> AbstractAsyncContextManager[World]:
    """Run both servers, without any misbehaviour."""
    return playing(World())


def visit(url: str) -> str:
    """Return the redirect target for a user who opens a URL and agrees to everything."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=10)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}")
        return connection.getresponse().headers["location"] or ""
    finally:
        connection.close()


async def agree(url: str) -> str:
    """Log in as a user who agrees at once."""
    return await to_thread.run_sync(visit, url)


def slowly(seconds: float) -> Manual:
    """Return a login in which the user takes some seconds to agree."""

    async def visit(url: str) -> str:
        await sleep(seconds)
        return await agree(url)

    return Manual(visit, CALLBACK)


def oauth(store: Store | None = None, **options: Any) -> OAuth:
    """Return an OAuth client whose login needs no interaction."""
    options.setdefault("login", Manual(agree, CALLBACK))
    options.setdefault("fetcher", Fetcher(timeout=5))
    return OAuth(store=store or MemoryStore(), **options)


async def call(url: str, auth: Any, *methods: str, opened: Any = http, **options: Any) -> list[Any]:
    """Send requests to an MCP server in sequence; return the results, with errors in place of missing results."""
    found: list[Any] = []
    async with opened(url, auth=auth, **options) as transport:
        for number, method in enumerate(methods or ("tools/list",), 1):
            message = request(number)
            message = type(message)(json.dumps({"jsonrpc": "2.0", "id": number, "method": method}).encode())
            message.id = number
            answer = await ask(transport, message)
            found.append(answer.error if isinstance(answer, Lost) else answer["result"])
    return found


def parts(address: str) -> Mapping[str, str]:
    """Return the query parameters of a URL."""
    return dict(parse_qsl(urlsplit(address).query))
