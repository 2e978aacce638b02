"""What the tests of protected servers share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.issuer import Issuer


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    """Run an issuer that is honest unless a test changes what it says."""
    with Issuer().listening() as found:
        yield found
