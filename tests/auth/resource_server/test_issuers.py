"""Number of requests to an issuer, and verification while the issuer is unavailable."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from joserfc.jwk import RSAKey

from mcp_bindgen.auth import Introspection, InvalidToken, JwtVerifier, VerifierUnavailable
from mcp_bindgen.auth.resource_server import issuers as asking
from mcp_bindgen.auth.resource_server import signatures as keeping
from mcp_bindgen.auth.resource_server.signatures import LIFETIME, PAUSE, STALE, IssuerKeys
from mcp_bindgen.runtime import Identity
from tests.harness.checked_connections import refused
from tests.harness.effort import each
from tests.harness.issuer import Issuer
from tests.harness.protected import Protected, running, said

RESOURCE = "https://example.org/mcp"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer().listening() as found:
        yield found


def statuses(server: Protected, tokens: list[str]) -> list[int]:
    """Call with all tokens at the same time; return the statuses."""
    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(lambda token: int(server.call("whoami", token=token).status_code), tokens))


# --- keys -----------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_many_unknown_key_ids_cause_one_fetch(issuer: Issuer) -> None:
    own = RSAKey.generate_key(2048)
    with running(JwtVerifier(issuer.url), issuer=issuer) as server:
        assert (statuses(server, [server.token()]), issuer.fetched) == ([200], 1)
        flood = [server.token(header={"kid": f"unknown-{number}"}, key=own) for number in range(40)]
        assert set(statuses(server, flood)) == {401}
        assert issuer.fetched <= 2
        assert said(server.call("whoami", token=server.token())) == "alice"


def test_concurrent_first_tokens_cause_one_fetch(issuer: Issuer) -> None:
    with running(JwtVerifier(issuer.url), issuer=issuer) as server:
        assert (statuses(server, [server.token() for _ in range(16)]), issuer.fetched) == ([200] * 16, 1)


def test_an_unavailable_issuer_gives_503_unless_its_keys_are_cached(issuer: Issuer) -> None:
    with running(JwtVerifier(issuer.url), issuer=issuer) as server:
        issuer.is_down = True
        early = server.call("whoami", token=server.token())
        assert early.status_code == 503  # the keys are unknown
        assert early.headers["retry-after"] == "5"
        assert "www-authenticate" not in early.headers
    with running(JwtVerifier(issuer.url), issuer=issuer) as server:
        issuer.is_down = False
        assert server.call("whoami", token=server.token()).status_code == 200
        issuer.is_down = True
        for _ in range(3):
            assert said(server.call("whoami", token=server.token())) == "alice"


async def test_keys_are_refreshed_in_the_background() -> None:
    issuer, loaded, now = Issuer(), 0, 1000.0

    async def load() -> Any:
        nonlocal loaded
        loaded += 1
        if issuer.is_down:
            raise OSError("away")
        return issuer.jwks()

    keys = IssuerKeys(load, issuer.url, lambda: now)

    async def known(id_: str | None, after: float = 0) -> bool:
        nonlocal now
        now += after
        found = bool(await keys.find(id_, "RS256"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return found

    assert await known("k1")
    assert await known(None)  # a single key needs no id
    issuer.keys["k2"] = RSAKey.generate_key(2048)
    assert not await known("k2")  # too soon
    assert await known("k2", after=PAUSE)  # fetched, because the key is unknown
    assert not await known(None)  # two keys: ambiguous
    assert loaded == 2
    del issuer.keys["k1"]
    assert await known("k1", after=LIFETIME + 1)  # the old key is valid until the fetch in the background ends
    assert not await known("k1")
    assert await known("k2")
    assert loaded == 3
    issuer.is_down = True
    for _ in range(5):
        assert await known("k2", after=LIFETIME + 1)
    assert loaded == 8
    await refused(known("k2", after=STALE), VerifierUnavailable)
    issuer.is_down = False
    with pytest.raises(VerifierUnavailable):
        await known("k2")  # there is a pause after each try
    assert await known("k2", after=PAUSE)


async def test_each_key_with_the_identifier_of_a_token_is_tried() -> None:
    issuer, second = Issuer(), RSAKey.generate_key(2048)
    twins = [{**key.as_dict(private=False), "kid": "k1"} for key in (issuer.key, second)]
    verifier = JwtVerifier(issuer.url, keys={"keys": twins})
    for key in (issuer.key, second):
        assert await verifier.verify(issuer.token(RESOURCE, key=key), RESOURCE) is not None
    await refused(verifier.verify(issuer.token(RESOURCE, key=RSAKey.generate_key(2048)), RESOURCE), InvalidToken)


async def test_a_cancelled_request_does_not_cancel_the_fetch_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    issuer, begun, go_on = Issuer(), asyncio.Event(), asyncio.Event()

    async def load() -> Any:
        begun.set()
        await go_on.wait()
        return issuer.jwks()

    keys = IssuerKeys(load, issuer.url)
    monkeypatch.setattr(keeping, "_MAX_WAITING", 2)
    first = asyncio.create_task(keys.find("k1", "RS256"))
    await begun.wait()
    second = asyncio.create_task(keys.find("k1", "RS256"))
    await asyncio.sleep(0)
    await refused(keys.find("k1", "RS256"), VerifierUnavailable, "too many requests wait")
    first.cancel()
    await asyncio.wait([first])
    go_on.set()
    assert await second


async def test_a_fetch_from_an_unresponsive_issuer_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "_FETCH_TIMEOUT", 0.05)
    await refused(IssuerKeys(asyncio.Event().wait, "https://auth.example.org").find("k1", "RS256"), VerifierUnavailable)


ENTRIES: list[Any] = [{"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0"}, {"use": "enc"}, {"key_ops": ["encrypt"]}, "x"]
ENTRIES += [{"alg": "PS256"}, {"kid": 1}, {"n": "AQAB"}, {"n": "x"}, {"e": None}, None]
ENTRIES += [{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}]


@pytest.mark.full
@each("entry", ENTRIES)
async def test_keys_that_cannot_verify_are_left_out(entry: Any) -> None:
    issuer = Issuer()
    good = issuer.jwks()["keys"][0]
    strange = {**good, **entry} if isinstance(entry, dict) else entry
    verifier = JwtVerifier(issuer.url, keys={"keys": [strange]})
    await refused(verifier.verify(issuer.token(RESOURCE), RESOURCE), (InvalidToken, VerifierUnavailable))
    both = JwtVerifier(issuer.url, keys={"keys": [strange, good]})
    assert await both.verify(issuer.token(RESOURCE), RESOURCE) is not None


@each("keys", [{}, {"keys": None}, Issuer().jwks()["keys"][0]])
def test_keys_that_are_no_set_are_refused(keys: Any) -> None:
    with pytest.raises(ValueError, match="no JWK Set"):
        JwtVerifier("https://auth.example.org", keys=keys)


async def test_short_keys_are_left_out(recwarn: pytest.WarningsRecorder) -> None:
    issuer = Issuer()
    issuer.keys["k1"] = issuer.key = RSAKey.generate_key(1024)
    verifier = JwtVerifier(issuer.url, keys=issuer.jwks())
    await refused(verifier.verify(issuer.token(RESOURCE), RESOURCE), Exception, "does not publish")
    recwarn.clear()


ADDRESSES = ["http://169.254.169.254/jwks", "https://10.0.0.1/jwks", "file:///etc/passwd", None]
CHANGES = [{"issuer": "https://elsewhere.example.org"}, {"issuer": "/"}, *({"jwks_uri": uri} for uri in ADDRESSES)]


@each("changes", CHANGES)
def test_metadata_of_another_issuer_and_unsafe_key_urls_are_not_used(issuer: Issuer, changes: Any) -> None:
    issuer.changes = changes
    with running(JwtVerifier(issuer.url), issuer=issuer) as server:
        assert server.call("whoami", token=server.token()).status_code == 503


async def test_a_final_slash_of_an_issuer_is_ignored_only_where_an_option_says_so() -> None:
    with Issuer().listening() as issuer:
        issuer.changes = {"issuer": f"{issuer.url}/"}
        token = issuer.token(RESOURCE, iss=f"{issuer.url}/")
        assert await JwtVerifier(issuer.url).verify(token, RESOURCE) is None
        with pytest.raises(Exception, match="could not be fetched"):
            await JwtVerifier(issuer.url).verify(issuer.token(RESOURCE), RESOURCE)
        verifier = JwtVerifier(issuer.url, ignore_final_slash=True)
        for one in (token, issuer.token(RESOURCE)):
            found = await verifier.verify(one, RESOURCE)
            assert found is not None
            assert found.issuer == issuer.url
        assert await verifier.verify(issuer.token(RESOURCE, iss=f"{issuer.url}//"), RESOURCE) is None


async def test_a_configured_audience_replaces_the_resource() -> None:
    issuer = Issuer()
    verifier = JwtVerifier(issuer.url, keys=issuer.jwks(), audience="api://mcp", types=("JWT",))
    assert await verifier.verify(issuer.token("api://mcp", header={"typ": "JWT"}), RESOURCE) is not None
    with pytest.raises(Exception, match="not for this resource"):
        await verifier.verify(issuer.token(RESOURCE, header={"typ": "JWT"}), RESOURCE)


async def test_an_origin_with_a_trailing_slash_is_the_same_audience() -> None:
    issuer = Issuer()
    verifier = JwtVerifier(issuer.url, keys=issuer.jwks())
    for audience in ("https://example.org", "https://example.org/"):
        assert await verifier.verify(issuer.token(audience), "https://example.org") is not None
    for audience in ("https://example.org/x", "https://example.or", "https://example.org//"):
        with pytest.raises(Exception, match="not for this resource"):
            await verifier.verify(issuer.token(audience), "https://example.org")


def test_a_verification_is_cached_no_longer_than_the_token_is_valid(issuer: Issuer) -> None:
    moment = [time.time()]

    class Counting(JwtVerifier):
        verified = 0

        async def verify(self, token: str, resource: str) -> Identity | None:
            self.verified += 1
            return await super().verify(token, resource)

    verifier = Counting(issuer.url, clock=lambda: moment[0])
    with running(verifier, issuer=issuer, clock=lambda: moment[0]) as server:
        token = server.token(exp=int(moment[0]) + 100)
        # the verifier allows a clock skew of a minute
        for pause, status, verified in ((0, 200, 1), (0, 200, 1), (150, 200, 1), (11, 401, 2)):
            moment[0] += pause
            assert (server.call("whoami", token=token).status_code, verifier.verified) == (status, verified)
        long = server.token(exp=int(moment[0]) + 10_000)
        for pause in (0, 200, 200):
            moment[0] += pause
            assert server.call("whoami", token=long).status_code == 200
        assert verifier.verified == 4  # verified again after a while


# --- introspection --------------------------------------------------------------------------------------------


def introspection(issuer: Issuer, **options: Any) -> Introspection:
    return Introspection(issuer.url, "mcp", "s:ecret", **options)


def test_a_token_is_introspected_once(issuer: Issuer) -> None:
    with running(introspection(issuer)) as server:
        issuer.known["opaque"] = {"active": True, **issuer.claims(server.url)}
        assert statuses(server, ["opaque"] * 16) == [200] * 16  # at the same time
        assert said(server.call("whoami", token="opaque")) == "alice"
        assert issuer.asked == 1
        for _ in range(3):
            assert server.call("whoami", token="unknown").status_code == 401
        assert issuer.asked == 2
        assert said(server.call("whoami", token="opaque", session=server.session("opaque"))) == "alice"
        assert issuer.asked == 2


WRONG: list[dict[str, Any]] = [{"active": active} for active in (False, "true", 1, ...)]
WRONG += [{"aud": ...}, {"aud": "https://elsewhere.example.org"}, {"exp": 1000}, {"nbf": 10**10}, {"cnf": {"jkt": "x"}}]
WRONG += [{"iss": "https://elsewhere.example.org"}, {"token_type": "refresh_token"}, {"sub": ..., "client_id": ...}]


@pytest.mark.full
@pytest.mark.parametrize("changes", WRONG, ids=str)
def test_claims_from_introspection_are_checked(issuer: Issuer, changes: dict[str, Any]) -> None:
    with running(introspection(issuer)) as server:
        claims = {"active": True, **issuer.claims(server.url), **changes}
        issuer.known["opaque"] = {name: value for name, value in claims.items() if value is not ...}
        refusals = [server.call("whoami", token="opaque") for _ in range(3)]
        assert [one.status_code for one in refusals] == [401, 401, 401]
        assert len({one.headers["www-authenticate"] for one in refusals}) == 1
        assert issuer.asked == 1


def test_a_revoked_token_is_accepted_until_its_cache_entry_expires(issuer: Issuer) -> None:
    moment = [time.time()]
    options: Any = {"clock": lambda: moment[0]}
    with running(introspection(issuer, keep=30.0, **options), **options) as server:
        issuer.known["opaque"] = {"active": True, **issuer.claims(server.url, exp=int(moment[0]) + 3000)}
        assert server.call("whoami", token="opaque").status_code == 200
        issuer.known["opaque"] = {"active": False}
        assert server.call("whoami", token="opaque").status_code == 200
        moment[0] += 31
        assert server.call("whoami", token="opaque").status_code == 401
        issuer.known["brief"] = {"active": True, **issuer.claims(server.url, exp=int(moment[0]) - 55)}
        assert server.call("whoami", token="brief").status_code == 200
        moment[0] += 6
        assert server.call("whoami", token="brief").status_code == 401  # expired, although cached


def test_a_failed_introspection_gives_503(issuer: Issuer) -> None:
    with running(introspection(issuer)) as server:
        issuer.is_down = True
        assert server.call("whoami", token="opaque").status_code == 503
    with running(Introspection(issuer.url, "mcp", "wrong")) as server:
        issuer.is_down = False
        assert server.call("whoami", token="opaque").status_code == 503


async def test_introspection_requests_and_cached_refusals_are_limited(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_MAX_REQUESTS", 5)
    monkeypatch.setattr(asking, "_MAX_REFUSED", 3)
    verifier = introspection(issuer)
    for turn in range(2):
        flood = [verifier.verify(f"token {turn} {number}", RESOURCE) for number in range(20)]
        answers = await asyncio.gather(*flood, return_exceptions=True)
        assert (sum(isinstance(one, VerifierUnavailable) for one in answers), answers.count(None)) == (15, 5)
    for number in range(5):
        assert await verifier.verify(f"one {number}", RESOURCE) is None
    asked = issuer.asked
    for number, is_asked in ((2, False), (3, False), (4, False), (1, True)):
        assert await verifier.verify(f"one {number}", RESOURCE) is None
        assert issuer.asked == asked + is_asked
