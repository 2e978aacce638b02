"""Talk to the endpoints of an authorization server, with proofs of possession where they are wanted (RFC 9449)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from ..dpop import HEADER, NONCE, ProofKey
from ..fetch import Fetched, Fetcher, FetchError, place
from ..metadata import ServerMetadata, origin
from .clients import KnownClient
from .grants import refusal

_NONCES = 2  # times that a server may want another nonce before it is given up
_LONGEST_NONCE = 1024


class NotRevocable(AuthorizationError):
    """An authorization server has no way to revoke tokens."""


class Endpoints:
    """The endpoints of authorization servers.

    Args:
        fetcher: Sends what is sent.
    """

    def __init__(self, fetcher: Fetcher) -> None:
        self.fetcher = fetcher
        self._nonces: dict[str, str] = {}

    async def token(
        self, server: ServerMetadata, client: KnownClient, form: Mapping[str, str], key: ProofKey | None = None
    ) -> dict[str, Any]:
        """Return what the token endpoint answers.

        Args:
            server: The authorization server.
            client: Who asks.
            form: What for.
            key: The key to prove the possession of.

        Raises:
            TokenRefused: It says no.
            AuthorizationError: It cannot be asked, or fails.
        """
        fetched, hidden = await self._post(server, server.token_endpoint, client, form, key)
        document = fetched.object
        if fetched.is_success and document is not None and "error" not in document:
            return document
        if fetched.status >= 500 or fetched.status == 429:
            raise AuthorizationError(f"{server.issuer} answered {fetched.status}; try again later", is_temporary=True)
        if document is None:
            raise AuthorizationError(f"{server.issuer} answered {fetched.status}, and no token")
        raise refusal(server, document, hidden)

    async def revoke(self, server: ServerMetadata, client: KnownClient, token: str, kind: str) -> None:
        """Revoke a token (RFC 7009); one of a kind that cannot be revoked ends by itself.

        Args:
            server: The authorization server.
            client: Whose token it is.
            token: The token.
            kind: `access_token` or `refresh_token`.

        Raises:
            AuthorizationError: It cannot be revoked.
        """
        if server.revocation_endpoint is None:
            raise NotRevocable(f"{server.issuer} has no way to revoke tokens; they end by themselves")
        form = {"token": token, "token_type_hint": kind}
        fetched, hidden = await self._post(server, server.revocation_endpoint, client, form, None)
        error = refusal(server, fetched.object or {}, hidden)
        if not fetched.is_success and error.error != "unsupported_token_type":
            raise error

    async def device(self, server: ServerMetadata, client: KnownClient, form: Mapping[str, str]) -> dict[str, Any]:
        """Begin the login of a device without a browser (RFC 8628); return what it is told.

        Raises:
            AuthorizationError: That does not work.
        """
        assert server.device_endpoint is not None
        fetched, hidden = await self._post(server, server.device_endpoint, client, form, None)
        if not fetched.is_success or fetched.object is None:
            raise refusal(server, fetched.object or {}, hidden)
        return fetched.object

    async def register(self, server: ServerMetadata, wanted: Mapping[str, Any]) -> Fetched:
        """Post what a client says of itself to the registration endpoint; raise `AuthorizationError`."""
        assert server.registration_endpoint is not None
        try:
            return await self.fetcher.post_json(server.registration_endpoint, wanted)
        except FetchError as error:
            raise AuthorizationError(str(error), is_temporary=error.is_temporary) from None

    async def _post(
        self,
        server: ServerMetadata,
        url: str,
        client: KnownClient,
        form: Mapping[str, str],
        key: ProofKey | None,
    ) -> tuple[Fetched, list[str]]:
        """Return the response, and what must not be repeated of what was sent."""
        for attempt in range(_NONCES + 1):
            credentials = client.credentials(server)
            sent = {**form, **credentials.form}
            headers = dict(credentials.headers)
            hidden = [value for name, value in sent.items() if name not in ("grant_type", "resource")]
            hidden += [credentials.secret, *(value.rpartition(" ")[2] for value in headers.values())]
            try:
                place_ = origin(url)
                nonce = self._nonces.get(place_)
                if key is not None:
                    headers[HEADER] = key.prove("POST", url, nonce=nonce)
                fetched = await self.fetcher.post_form(url, sent, headers=headers)
            except FetchError as error:
                raise AuthorizationError(str(error), is_temporary=error.is_temporary) from None
            except ValueError:
                raise AuthorizationError(f"{server.issuer} names an endpoint that is no URL") from None
            fresh = fetched.headers.get(NONCE)
            if fresh and len(fresh) <= _LONGEST_NONCE:
                self._nonces[place_] = fresh
            wants_nonce = (fetched.object or {}).get("error") == "use_dpop_nonce"
            if not (key is not None and wants_nonce and fresh and fresh != nonce and attempt < _NONCES):
                return fetched, hidden
        raise AuthorizationError(f"{place(url)} wants another nonce each time")
