"""Proofs of possession according to RFC 9449 and RFC 7638; the private key is never shown."""

from __future__ import annotations

import json
import time

import pytest
from joserfc import jwk, jwt

from mcp_bindgen.auth.dpop import ProofKey, token_hash
from mcp_bindgen.auth.metadata import target_uri
from tests.harness.effort import each


def test_a_proof_states_method_url_time_token_and_nonce() -> None:
    key = ProofKey.generate()
    proof = key.prove("POST", "HTTPS://Server.example:443/mcp?a=1#b", token="t0ken", nonce="n")
    token = jwt.decode(proof, jwk.import_key(key.public), algorithms=["ES256"])
    assert token.header == {"typ": "dpop+jwt", "alg": "ES256", "jwk": key.public}
    assert "d" not in key.public
    claims = dict(token.claims)
    assert abs(claims.pop("iat") - time.time()) < 5
    assert len(claims.pop("jti")) == 32
    assert claims == {"htm": "POST", "htu": "https://server.example/mcp", "ath": token_hash("t0ken"), "nonce": "n"}
    assert key.prove("GET", "https://a") != key.prove("GET", "https://a")


def test_thumbprints_and_hashes_match_the_specifications() -> None:
    key: dict[str, str | list[str]] = {
        "kty": "EC",
        "crv": "P-256",
        "x": "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
        "y": "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA",
    }  # RFC 9449, section 4.1, and its thumbprint in section 6.1
    assert jwk.import_key(key).thumbprint() == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
    assert token_hash("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU") == "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo"


def test_a_key_is_stored_as_text_and_absent_from_errors_and_repr() -> None:
    key = ProofKey.generate()
    assert ProofKey.load(key.dump()).thumbprint == key.thumbprint
    secret = json.loads(key.dump())["d"]
    assert secret not in repr(key)
    with pytest.raises(ValueError, match="not a key") as caught:
        ProofKey.load(key.dump().replace("P-256", "P-1"))
    assert secret not in str(caught.value)
    assert caught.value.__suppress_context__


@each(
    ("url", "expected"),
    [
        ("http://LOCALHOST:80", "http://localhost/"),
        ("https://a.example:8443/x/?y#z", "https://a.example:8443/x/"),
        ("https://[::1]:443/x", "https://[::1]/x"),
        ("https://BÜCHER.example/x", "https://xn--bcher-kva.example/x"),
    ],
)
def test_target_uris_are_normalized_for_comparison(url: str, expected: str) -> None:
    assert target_uri(url) == expected
