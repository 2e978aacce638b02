"""Fixtures for tests of protected servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcp_bindgen.auth import JwtVerifier
from tests.harness.issuer import Issuer
from tests.harness.protected import Protected, running


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    """Run an issuer that is honest unless a test changes its responses."""
    with Issuer().listening() as found:
        yield found


@pytest.fixture(scope="module")
def server(issuer: Issuer) -> Iterator[Protected]:
    """Run a server that accepts tokens of the issuer."""
    with running(JwtVerifier(issuer.url), issuer=issuer) as found:
        yield found
