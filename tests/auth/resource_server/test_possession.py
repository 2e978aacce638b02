"""Tokens that are bound to a key, and proofs of its possession (RFC 9449), over real connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from joserfc.jwk import ECKey, RSAKey

from mcp_bindgen.auth import JwtVerifier, Nonces, challenges
from mcp_bindgen.auth.resource_server import dpop as replay
from mcp_bindgen.auth.resource_server.dpop import ProofVerifier
from mcp_bindgen.auth.resource_server.verifier import InvalidProof, VerifierUnavailable
from mcp_bindgen.runtime.protocol.errors import StoreUnavailable
from tests.harness.effort import each, rows
from tests.harness.issuer import Issuer, Prover
from tests.harness.protected import LATEST, Protected, initialize, running, said


@pytest.fixture(scope="module")
def server(issuer: Issuer) -> Iterator[Protected]:
    with running(JwtVerifier(issuer.url), issuer=issuer, dpop="optional") as found:
        yield found


def call(server: Protected, token: str, *proof: str, scheme: str = "DPoP") -> Any:
    """Call a tool with a token and proofs, and return the response."""
    headers = {"authorization": f"{scheme} {token}"}
    if len(proof) < 2:
        return server.call("whoami", headers=headers | ({"dpop": proof[0]} if proof else {}))
    pairs = [("authorization", headers["authorization"]), *(("dpop", one) for one in proof)]
    return server.client.post(server.url, json=initialize(LATEST), headers=pairs)


def error(response: Any, scheme: str = "dpop") -> str | None:
    """Return the error code in the challenge of a scheme."""
    found = challenges.parse(response.headers.get_list("www-authenticate"))
    return next(one for one in found if one.scheme == scheme).parameters.get("error")


class Holder(Prover):
    """Client with a token that is bound to its key."""

    def __init__(self, server: Protected) -> None:
        super().__init__()
        self.server, self.token = server, server.token(cnf={"jkt": self.thumbprint})

    def proven(self, **changes: Any) -> str:
        """Return a proof for this token, with some claims or headers changed."""
        return self.proof(self.server.url, self.token, **changes)

    def headers(self, **changes: Any) -> dict[str, str]:
        return {"authorization": f"DPoP {self.token}", "dpop": self.proven(**changes)}

    def call(self, *proofs: str, scheme: str = "DPoP") -> Any:
        """Call a tool with the token and proofs, and return the response."""
        return call(self.server, self.token, *proofs, scheme=scheme)

    def refused(self, *proofs: str) -> str | None:
        """Return the error code for these proofs."""
        return error(self.call(*proofs))


@pytest.fixture
def mine(server: Protected) -> Holder:
    return Holder(server)


def test_a_bound_token_with_a_proof_is_accepted(server: Protected, mine: Holder) -> None:
    for _ in range(3):
        assert said(mine.call(mine.proven())) == "alice"
    assert said(mine.call(mine.proof(f"{server.url}?query#fragment", mine.token), scheme="dpop")) == "alice"
    assert said(call(server, server.token(), scheme="Bearer")) == "alice"  # bearer tokens still work


def test_every_request_of_a_session_requires_a_proof(server: Protected, mine: Holder) -> None:
    session = {"mcp-session-id": server.post(initialize(LATEST), headers=mine.headers()).headers["mcp-session-id"]}
    server.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session | mine.headers())
    assert said(server.call("whoami", session=session, headers=mine.headers())) == "alice"
    assert server.call("whoami", session=session, headers={"authorization": f"DPoP {mine.token}"}).status_code == 401
    assert server.client.delete(server.url, headers=session | mine.headers(method="DELETE")).status_code == 204


def test_challenges_and_metadata_offer_bearer_and_dpop(server: Protected) -> None:
    found = challenges.parse(server.call("whoami").headers.get_list("www-authenticate"))
    assert [one.scheme for one in found] == ["bearer", "dpop"]
    assert found[1].parameters["algs"] == "ES256 ES384 EdDSA Ed25519"
    metadata = server.client.get(server.metadata_url).json()
    assert metadata["dpop_signing_alg_values_supported"] == ["ES256", "ES384", "EdDSA", "Ed25519"]
    assert metadata["dpop_bound_access_tokens_required"] is False


def test_a_bound_token_is_refused_as_a_bearer_token(mine: Holder, issuer: Issuer) -> None:
    for proofs in ([], [mine.proven()]):
        response = mine.call(*proofs, scheme="Bearer")
        assert response.status_code == 401
        assert error(response) == error(response, "bearer") == "invalid_token"
    with running(JwtVerifier(issuer.url), issuer=issuer) as plain:  # also on a server without support for proofs
        theirs = Holder(plain)
        assert theirs.call(scheme="Bearer").status_code == theirs.call(theirs.proven()).status_code == 401


@each("cnf", [{}, {"x5t#S256": "x"}, {"jkt": 1}, {"jkt": "x", "jwk": {}}, "x", [], {"jkt": "\u00e9"}])
def test_a_token_that_is_bound_in_another_way_is_refused(server: Protected, cnf: Any) -> None:
    token = server.token(cnf=cnf)
    for scheme in ("Bearer", "DPoP"):
        assert call(server, token, Prover().proof(server.url, token), scheme=scheme).status_code == 401


def test_an_unbound_token_is_refused_with_a_proof_or_if_dpop_is_required(server: Protected, issuer: Issuer) -> None:
    token = server.token()
    assert error(call(server, token, Prover().proof(server.url, token))) == "invalid_token"
    with running(JwtVerifier(issuer.url), issuer=issuer, dpop="required") as strict:
        refused = call(strict, strict.token(), scheme="Bearer")
        assert refused.status_code == 401
        assert [one.scheme for one in challenges.parse(refused.headers.get_list("www-authenticate"))] == ["dpop"]
        theirs = Holder(strict)
        assert said(theirs.call(theirs.proven())) == "alice"


URLS = ["https://elsewhere.example.org/mcp", "ORIGIN/", "ORIGIN/mcp/", "ORIGIN/MCP", "ORIGIN/sse", "https:HOST/mcp"]
CHANGES: dict[str, list[Any]] = {
    "method": ["GET"],
    "htm": ["post", ...],
    "htu": [*URLS, 1, "http://[/mcp", ...],
    "ath": ["x", ..., 1, "\u00e9"],
    "iat": [0, "OLD", "AHEAD", ..., True, "now", 1e308, 10**400],
    "jti": [..., "", 1],
    "header": [
        *({"typ": "jwt"}, {"typ": ...}, {"crit": ["x"]}, {"jku": "https://example.org"}, {"jwk": ...}, {"jwk": "x"}),
        *({"jwk": {"kty": "EC", "crv": "P-256"}}, {"jwk": {"kty": "EC", "crv": [], "x": {}, "y": 1}}),
    ],
}


@each(("value", "name"), rows(CHANGES))
def test_a_proof_with_wrong_claims_or_headers_is_refused(
    server: Protected, mine: Holder, value: Any, name: str
) -> None:
    if name == "iat" and isinstance(value, str):
        value = {"OLD": int(time.time()) - 400, "AHEAD": int(time.time()) + 400}.get(value, value)
    if name == "htu" and isinstance(value, str):
        value = value.replace("ORIGIN", server.origin).replace("HOST", server.origin.removeprefix("http:"))
    response = mine.call(mine.proven(**{name: value}))
    assert (response.status_code, error(response)) == (401, "invalid_dpop_proof")
    assert error(response, "bearer") is None


def test_a_proof_must_be_signed_with_the_key_of_the_token(server: Protected, mine: Holder) -> None:
    thief, wide, curve = Prover(), RSAKey.generate_key(2048), ECKey.generate_key("P-384")
    for proof in (
        thief.proof(server.url, mine.token),
        # not signed with the key in its header
        thief.proof(server.url, mine.token, header={"jwk": mine.key.as_dict(private=False)}),
        mine.proven(header={"jwk": mine.key.as_dict(private=True)}),
        mine.proof(server.url, server.token()),
        mine.proven(header={"alg": "HS256"}, key=b"secret"),
        mine.proven()[:-4],
        mine.proven(header={"alg": "RS256", "jwk": wide.as_dict(private=False)}, key=wide),
        mine.proven(header={"alg": "ES384", "jwk": curve.as_dict(private=False)}, key=curve),
    ):
        assert mine.refused(proof) == "invalid_dpop_proof"


def test_a_proof_is_accepted_once(server: Protected, mine: Holder) -> None:
    one = mine.proven()
    first, second = (mine.proven(jti="same", iat=int(time.time()) - age) for age in (0, 1))
    for proof, again in ((one, one), (first, second)):
        assert (mine.call(proof).status_code, mine.refused(again)) == (200, "invalid_dpop_proof")
    other = Holder(server)
    assert other.call(other.proven(jti="same")).status_code == 200


def test_a_missing_repeated_or_overlong_proof_is_refused(mine: Holder) -> None:
    for proofs in ([], ["x"], [mine.proven(), mine.proven()], [mine.proven(more="x" * 9000)]):
        assert mine.refused(*proofs) == "invalid_dpop_proof"


def test_a_proof_must_contain_the_configured_url(server: Protected, mine: Holder) -> None:
    forged = {"host": "localhost", "x-forwarded-host": "evil.example.org", "x-forwarded-proto": "https"}
    for url in ("http://localhost/mcp", "https://evil.example.org/mcp"):
        headers = {"authorization": f"DPoP {mine.token}", "dpop": mine.proof(url, mine.token), **forged}
        assert server.call("whoami", headers=headers).status_code == 401
    assert mine.call(mine.proof(server.url.replace("http:", "HTTP:"), mine.token)).status_code == 200


def test_a_proof_without_a_valid_nonce_is_refused(issuer: Issuer) -> None:
    moment = [1000.0]
    nonces = Nonces(key=b"k" * 32, lifetime=100, clock=lambda: moment[0])
    with running(JwtVerifier(issuer.url), issuer=issuer, dpop="required", nonces=nonces) as server:
        mine = Holder(server)

        def tried(**changes: Any) -> Any:
            return mine.call(mine.proven(**changes))

        asked = tried()
        assert (asked.status_code, error(asked)) == (401, "use_dpop_nonce")
        nonce = asked.headers["dpop-nonce"]
        for seconds in (100, 100):
            assert tried(nonce=nonce).status_code == 200  # the previous nonce is valid, too
            moment[0] += seconds
        for wrong in (nonce, "x", "", 1, None, [nonce], "\u00e9"):
            assert error(tried(nonce=wrong)) == "use_dpop_nonce"
        assert tried(nonce=Nonces(key=b"k" * 32, lifetime=100, clock=lambda: moment[0]).current()).status_code == 200


URL = "https://example.org/mcp"


async def verify(verifier: ProofVerifier, prover: Prover, proof: str | float) -> None:
    """Verify a proof, or a new proof with this issue time."""
    text = proof if isinstance(proof, str) else prover.proof(URL, "token", iat=proof)
    await verifier.verify(text.encode(), "POST", (URL,), "token", prover.thumbprint)


async def test_proofs_are_remembered_until_they_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = [time.time()]
    verifier, prover = ProofVerifier(clock=lambda: moment[0]), Prover()
    ahead = prover.proof(URL, "token", iat=moment[0] + 290)
    await verify(verifier, prover, ahead)
    moment[0] += 580  # still within the time window
    with pytest.raises(InvalidProof, match="used before"):
        await verify(verifier, prover, ahead)
    monkeypatch.setattr(replay, "_MAX_PROOFS", 3)
    for _ in range(2):
        await verify(verifier, prover, moment[0])
    with pytest.raises(VerifierUnavailable):
        await verify(verifier, prover, moment[0])
    moment[0] += 700
    await verify(verifier, prover, moment[0])  # expired proofs are forgotten


@pytest.mark.full
@each("skews", [(60, -60), (-60, 60), (10, -10), (60, 60)])
async def test_a_proof_is_accepted_once_despite_clock_skew_between_processes(skews: tuple[float, float]) -> None:
    time_here = [1_000_000.0]
    shared = replay.MemoryReplayCache(lambda: time_here[0])
    both = [ProofVerifier(clock=lambda skew=skew: time_here[0] + skew, replay=shared) for skew in skews]  # type: ignore[misc]
    prover, taken = Prover(), 0
    proof = prover.proof(URL, "token", iat=time_here[0])
    for time_here[0] in range(999_600, 1_000_400, 5):
        for verifier in both:
            with suppress(InvalidProof):
                await verify(verifier, prover, proof)
                taken += 1
    assert taken == 1


async def test_a_client_with_too_many_proofs_does_not_block_other_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_MAX_PROOFS_OF_KEY", 3)
    moment = [time.time()]
    verifier = ProofVerifier(clock=lambda: moment[0])
    many, other = Prover(), Prover()
    for _ in range(3):
        await verify(verifier, many, moment[0])
    with pytest.raises(VerifierUnavailable):
        await verify(verifier, many, moment[0])
    await verify(verifier, other, moment[0])
    moment[0] += 422  # all proofs have expired, by any clock
    for _ in range(3):
        await verify(verifier, many, moment[0])


def test_processes_can_share_a_cache_of_proofs(issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
    """Servers that share a cache accept a proof once, and accept none while the cache is unavailable.

    A cache that reports that it is unavailable is no failure of the program, so the log has no traceback of it.
    """
    asked: list[tuple[int, str, float]] = []

    class Shared:
        def __init__(self) -> None:
            self.kept, self.failures = set[bytes](), list[Exception]()

        async def add(self, proof: bytes, owner: str, seconds: float) -> bool:
            await asyncio.sleep(0)
            if self.failures:
                raise self.failures.pop()
            asked.append((len(proof), owner, seconds))
            is_new = proof not in self.kept
            self.kept.add(proof)
            return is_new

    shared, prover = Shared(), Prover()
    options: Any = {"dpop": "required", "replay": shared}
    verifier = JwtVerifier(issuer.url, audience="https://example.org/mcp")
    with running(verifier, **options) as first, running(verifier, **options) as second:
        token = issuer.token("https://example.org/mcp", cnf={"jkt": prover.thumbprint})
        proof = prover.proof(first.url, token, jti="same")
        assert call(first, token, proof).status_code == 200
        assert error(call(second, token, prover.proof(second.url, token, jti="same"))) == "invalid_dpop_proof"
        assert call(second, token, prover.proof(second.url, token)).status_code == 200
        for failure, is_known in ((ConnectionError("away"), False), (StoreUnavailable("away"), True)):
            caplog.clear()
            shared.failures.append(failure)
            refused = call(second, token, prover.proof(second.url, token))
            assert refused.status_code == 503
            assert "away" not in refused.text
            assert any(one.exc_info or one.exc_text for one in caplog.records) != is_known
    assert {(size, owner) for size, owner, _ in asked} == {(32, prover.thumbprint)}
    assert all(410 < seconds < 422 for _, _, seconds in asked)
