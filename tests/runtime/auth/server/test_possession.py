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
from mcp_bindgen.auth.resource_server.dpop import InvalidProof, ProofVerifier
from mcp_bindgen.auth.resource_server.verifier import VerifierUnavailable
from tests.support.issuer import Issuer, Prover
from tests.support.protected import LATEST, Protected, called, initialize, running, said


@pytest.fixture(scope="module")
def server(issuer: Issuer) -> Iterator[Protected]:
    with running(JwtVerifier(issuer.url), dpop="optional") as found:
        yield found


def bound(issuer: Issuer, server: Protected, prover: Prover) -> str:
    return issuer.token(server.url, cnf={"jkt": prover.thumbprint})


def call(server: Protected, token: str, *proof: str, scheme: str = "DPoP") -> Any:
    """The response to a call with a token and proofs."""
    headers = {"authorization": f"{scheme} {token}"}
    if len(proof) < 2:
        return server.call("whoami", headers=headers | ({"dpop": proof[0]} if proof else {}))
    pairs = [("authorization", headers["authorization"]), *(("dpop", one) for one in proof)]
    return server.client.post(server.url, json=initialize(LATEST), headers=pairs)


def error(response: Any, scheme: str = "dpop") -> str | None:
    """Return what a challenge of a scheme says is wrong."""
    found = challenges.parse(response.headers.get_list("www-authenticate"))
    return next(one for one in found if one.scheme == scheme).parameters.get("error")


def test_a_bound_token_is_taken_with_a_proof(server: Protected, issuer: Issuer) -> None:
    prover = Prover()
    token = bound(issuer, server, prover)
    for _ in range(3):
        assert said(call(server, token, prover.proof(server.url, token))) == "alice"
    assert said(call(server, token, prover.proof(f"{server.url}?query#fragment", token), scheme="dpop")) == "alice"
    assert said(call(server, issuer.token(server.url), scheme="Bearer")) == "alice"  # others stay as they are


def test_a_session_wants_a_proof_for_each_request(server: Protected, issuer: Issuer) -> None:
    prover = Prover()
    token = bound(issuer, server, prover)

    def signed() -> dict[str, str]:
        return {"authorization": f"DPoP {token}", "dpop": prover.proof(server.url, token)}

    begun = server.post(initialize(LATEST), headers=signed())
    session = {"mcp-session-id": begun.headers["mcp-session-id"]}
    server.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session | signed())
    assert said(server.post(called("whoami"), headers=session | signed())) == "alice"
    assert server.post(called("whoami"), headers=session | {"authorization": f"DPoP {token}"}).status_code == 401
    deleting = {"authorization": f"DPoP {token}", "dpop": prover.proof(server.url, token, method="DELETE")}
    assert server.client.delete(server.url, headers=session | deleting).status_code == 204


def test_both_schemes_are_offered(server: Protected) -> None:
    found = challenges.parse(server.call("whoami").headers.get_list("www-authenticate"))
    assert [one.scheme for one in found] == ["bearer", "dpop"]
    assert found[1].parameters["algs"] == "ES256 ES384 EdDSA Ed25519"
    metadata = server.client.get(f"{server.origin}/.well-known/oauth-protected-resource/mcp").json()
    assert metadata["dpop_signing_alg_values_supported"] == ["ES256", "ES384", "EdDSA", "Ed25519"]
    assert metadata["dpop_bound_access_tokens_required"] is False


def test_a_bound_token_is_no_bearer_token(server: Protected, issuer: Issuer) -> None:
    prover = Prover()
    token = bound(issuer, server, prover)
    for proof in ((), (prover.proof(server.url, token),)):
        response = call(server, token, *proof, scheme="Bearer")
        assert response.status_code == 401
        assert error(response) == error(response, "bearer") == "invalid_token"
    with running(JwtVerifier(issuer.url)) as plain:  # also where nobody speaks of proofs
        token = bound(issuer, plain, prover)
        assert call(plain, token, scheme="Bearer").status_code == 401
        assert call(plain, token, prover.proof(plain.url, token)).status_code == 401


@pytest.mark.parametrize(
    "cnf", [{}, {"x5t#S256": "x"}, {"jkt": 1}, {"jkt": "x", "jwk": {}}, "x", [], {"jkt": "\u00e9"}], ids=str
)
def test_a_token_that_is_bound_in_another_way_is_refused(server: Protected, issuer: Issuer, cnf: Any) -> None:
    token = issuer.token(server.url, cnf=cnf)
    for scheme in ("Bearer", "DPoP"):
        assert call(server, token, Prover().proof(server.url, token), scheme=scheme).status_code == 401


def test_an_unbound_token_needs_no_proof_and_gets_no_better_by_one(server: Protected, issuer: Issuer) -> None:
    token = issuer.token(server.url)
    assert error(call(server, token, Prover().proof(server.url, token))) == "invalid_token"
    with running(JwtVerifier(issuer.url), dpop="required") as strict:
        token = issuer.token(strict.url)
        refused = call(strict, token, scheme="Bearer")
        assert refused.status_code == 401
        assert [one.scheme for one in challenges.parse(refused.headers.get_list("www-authenticate"))] == ["dpop"]
        prover = Prover()
        token = bound(issuer, strict, prover)
        assert said(call(strict, token, prover.proof(strict.url, token))) == "alice"


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "GET"},
        {"htm": "post"},
        {"htm": ...},
        {"htu": "https://elsewhere.example.org/mcp"},
        {"htu": "ORIGIN/"},
        {"htu": "ORIGIN/mcp/"},
        {"htu": "ORIGIN/MCP"},
        {"htu": "ORIGIN/sse"},
        {"htu": "https:HOST/mcp"},
        {"htu": 1},
        {"htu": "http://[/mcp"},
        {"htu": ...},
        {"ath": "x"},
        {"ath": ...},
        {"ath": 1},
        {"ath": "\u00e9"},
        {"iat": 0},
        {"iat": "OLD"},
        {"iat": "AHEAD"},
        {"iat": ...},
        {"iat": True},
        {"iat": "now"},
        {"iat": 1e308},
        {"iat": 10**400},
        {"jti": ...},
        {"jti": ""},
        {"jti": 1},
        {"header": {"typ": "jwt"}},
        {"header": {"typ": ...}},
        {"header": {"jwk": ...}},
        {"header": {"jwk": "x"}},
        {"header": {"jwk": {"kty": "EC", "crv": "P-256"}}},
        {"header": {"jwk": {"kty": "EC", "crv": [], "x": {}, "y": 1}}},
        {"header": {"crit": ["x"]}},
        {"header": {"jku": "https://example.org"}},
    ],
    ids=str,
)
def test_a_proof_of_something_else_is_refused(server: Protected, issuer: Issuer, changes: dict[str, Any]) -> None:
    prover = Prover()
    token = bound(issuer, server, prover)
    times = {"OLD": int(time.time()) - 400, "AHEAD": int(time.time()) + 400}
    if isinstance(changes.get("iat"), str):
        changes = {"iat": times.get(changes["iat"], changes["iat"])}
    if isinstance(changes.get("htu"), str):
        host = server.origin.removeprefix("http:")
        changes = {"htu": changes["htu"].replace("ORIGIN", server.origin).replace("HOST", host)}
    response = call(server, token, prover.proof(server.url, token, **changes))
    assert response.status_code == 401
    assert error(response) == "invalid_dpop_proof"
    assert error(response, "bearer") is None


def test_a_proof_is_by_the_key_of_the_token(server: Protected, issuer: Issuer) -> None:
    mine, thief = Prover(), Prover()
    token = bound(issuer, server, mine)
    public = {"jwk": mine.key.as_dict(private=False)}
    private = {"jwk": mine.key.as_dict(private=True)}
    for proof in (
        thief.proof(server.url, token),
        thief.proof(server.url, token, header=public),  # signed with another key than it shows
        mine.proof(server.url, token, header=private),
        mine.proof(server.url, issuer.token(server.url)),
        mine.proof(server.url, token, header={"alg": "HS256"}, key=b"secret"),
        mine.proof(server.url, token)[:-4],
    ):
        assert error(call(server, token, proof)) == "invalid_dpop_proof"
    wide = RSAKey.generate_key(2048)
    shown = {"alg": "RS256", "jwk": wide.as_dict(private=False)}
    assert error(call(server, token, mine.proof(server.url, token, header=shown, key=wide))) == "invalid_dpop_proof"
    curve = ECKey.generate_key("P-384")
    shown = {"jwk": curve.as_dict(private=False)}
    unfit = mine.proof(server.url, token, header={**shown, "alg": "ES384"}, key=curve)
    assert error(call(server, token, unfit)) == "invalid_dpop_proof"


def test_a_proof_counts_once(server: Protected, issuer: Issuer) -> None:
    prover = Prover()
    token = bound(issuer, server, prover)
    proof = prover.proof(server.url, token)
    assert call(server, token, proof).status_code == 200
    assert error(call(server, token, proof)) == "invalid_dpop_proof"
    first, second = (prover.proof(server.url, token, jti="same", iat=int(time.time()) - age) for age in (0, 1))
    assert call(server, token, first).status_code == 200
    assert error(call(server, token, second)) == "invalid_dpop_proof"
    other = Prover()
    theirs = bound(issuer, server, other)
    assert call(server, theirs, other.proof(server.url, theirs, jti="same")).status_code == 200


def test_there_is_one_proof(server: Protected, issuer: Issuer) -> None:
    prover = Prover()
    token = bound(issuer, server, prover)
    assert error(call(server, token)) == "invalid_dpop_proof"
    assert error(call(server, token, "x")) == "invalid_dpop_proof"
    two = [prover.proof(server.url, token) for _ in range(2)]
    assert error(call(server, token, *two)) == "invalid_dpop_proof"
    assert error(call(server, token, prover.proof(server.url, token, more="x" * 9000))) == "invalid_dpop_proof"


def test_the_address_of_a_proof_is_the_one_that_is_configured(server: Protected, issuer: Issuer) -> None:
    prover = Prover()
    token = bound(issuer, server, prover)
    forged = {"host": "localhost", "x-forwarded-host": "evil.example.org", "x-forwarded-proto": "https"}
    for url in ("http://localhost/mcp", "https://evil.example.org/mcp"):
        headers = {"authorization": f"DPoP {token}", "dpop": prover.proof(url, token), **forged}
        assert server.call("whoami", headers=headers).status_code == 401
    headers = {"authorization": f"DPoP {token}", "dpop": prover.proof(server.url.replace("http:", "HTTP:"), token)}
    assert server.call("whoami", headers=headers).status_code == 200


def test_a_nonce_is_asked_for(issuer: Issuer) -> None:
    moment = [1000.0]
    nonces = Nonces(key=b"k" * 32, lifetime=100, clock=lambda: moment[0])
    with running(JwtVerifier(issuer.url), dpop="required", nonces=nonces) as server:
        prover = Prover()
        token = bound(issuer, server, prover)

        def tried(**changes: Any) -> Any:
            return call(server, token, prover.proof(server.url, token, **changes))

        asked = tried()
        assert asked.status_code == 401
        assert error(asked) == "use_dpop_nonce"
        nonce = asked.headers["dpop-nonce"]
        assert tried(nonce=nonce).status_code == 200
        moment[0] += 100
        assert tried(nonce=nonce).status_code == 200  # the one before
        moment[0] += 100
        assert error(tried(nonce=nonce)) == "use_dpop_nonce"
        for wrong in ("x", "", 1, None, [nonce], "\u00e9"):
            assert error(tried(nonce=wrong)) == "use_dpop_nonce"
        assert tried(nonce=Nonces(key=b"k" * 32, lifetime=100, clock=lambda: moment[0]).current()).status_code == 200


def test_proofs_are_remembered_for_as_long_as_they_are_good(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = [time.time()]
    verifier = ProofVerifier(clock=lambda: moment[0])
    prover = Prover()
    url = "https://example.org/mcp"

    def verify(proof: str) -> None:
        asyncio.run(verifier.verify(proof.encode(), "POST", (url,), "token", prover.thumbprint))

    ahead = prover.proof(url, "token", iat=moment[0] + 290)
    verify(ahead)
    moment[0] += 580  # it would still be good
    with pytest.raises(InvalidProof, match="used before"):
        verify(ahead)
    monkeypatch.setattr(replay, "_MAX_PROOFS", 3)
    for _ in range(2):
        verify(prover.proof(url, "token", iat=moment[0]))
    with pytest.raises(VerifierUnavailable):
        verify(prover.proof(url, "token", iat=moment[0]))
    moment[0] += 700
    verify(prover.proof(url, "token", iat=moment[0]))  # those of before are forgotten


@pytest.mark.parametrize("skews", [(60, -60), (-60, 60), (10, -10), (60, 60)])
def test_a_proof_counts_once_for_processes_whose_clocks_are_a_minute_off(skews: tuple[float, float]) -> None:
    time_here = [1_000_000.0]
    shared = replay.MemoryReplayCache(lambda: time_here[0])
    both = [ProofVerifier(clock=lambda skew=skew: time_here[0] + skew, replay=shared) for skew in skews]  # type: ignore[misc]
    prover, url = Prover(), "https://example.org/mcp"
    proof = prover.proof(url, "token", iat=time_here[0]).encode()

    async def body() -> None:
        taken = 0
        for time_here[0] in range(999_600, 1_000_400, 5):
            for verifier in both:
                with suppress(InvalidProof):
                    await verifier.verify(proof, "POST", (url,), "token", prover.thumbprint)
                    taken += 1
        assert taken == 1

    asyncio.run(body())


def test_a_client_that_sends_many_proofs_shuts_out_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_MAX_PROOFS_OF_KEY", 3)
    moment = [time.time()]
    verifier = ProofVerifier(clock=lambda: moment[0])
    many, other = Prover(), Prover()

    def verify(prover: Prover) -> None:
        proof = prover.proof("https://example.org/mcp", "token", iat=moment[0])
        urls = ("https://example.org/mcp",)
        asyncio.run(verifier.verify(proof.encode(), "POST", urls, "token", prover.thumbprint))

    for _ in range(3):
        verify(many)
    with pytest.raises(VerifierUnavailable):
        verify(many)
    verify(other)
    moment[0] += 422  # none of them is good any longer, by any clock
    for _ in range(3):
        verify(many)


def test_processes_can_share_what_they_remember_of_proofs(issuer: Issuer) -> None:
    """Two servers of one resource take a proof once between them, and none while nobody can tell."""
    asked: list[tuple[int, str, float]] = []

    class Shared:
        def __init__(self) -> None:
            self.kept = set[bytes]()
            self.is_away = False

        async def add(self, proof: bytes, owner: str, seconds: float) -> bool:
            await asyncio.sleep(0)
            if self.is_away:
                raise ConnectionError("away")
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
        again = prover.proof(second.url, token, jti="same")
        assert error(call(second, token, again)) == "invalid_dpop_proof"
        assert call(second, token, prover.proof(second.url, token)).status_code == 200
        shared.is_away = True
        refused = call(second, token, prover.proof(second.url, token))
        assert refused.status_code == 503
        assert "away" not in refused.text
    assert {(size, owner) for size, owner, _ in asked} == {(32, prover.thumbprint)}
    assert all(410 < seconds < 422 for _, _, seconds in asked)
