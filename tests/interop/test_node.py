"""Conversations with TypeScript SDKs, reference servers and the Inspector over stdio, SSE and HTTP.

They are npm packages: `tests/interop/package.json` names them, `.ci/run` installs them. The steps of conversations are
in `ours.py`, `everything.py`, `typescript.py` (with `node_client.mjs`) and `inspector.py`.
"""

from __future__ import annotations

import signal
import subprocess

import pytest

from mcp_bindgen.runtime.transports.stdio import stdio
from tests.interop.everything import EVERYTHING
from tests.interop.matrix import verify
from tests.interop.ours import ROOTS, client
from tests.interop.peers import NODE, TRANSPORTS, Peer, answering, cases, found
from tests.interop.processes import FULL_SERVER, needed, node
from tests.interop.report import STATEFUL, STATELESS, Report
from tests.interop.typescript import judge, look

pytestmark = pytest.mark.full
BY_NAME = {peer.name: peer for peer in NODE}
LATEST = STATEFUL[-1]


@pytest.fixture(autouse=True)
def packages() -> None:
    """Skip the tests if the npm packages are not installed; in CI, fail."""
    needed()


@pytest.mark.parametrize(
    ("peer", "over"), [pytest.param(*case, id=f"{case[0].name}-{case[1]}") for case in cases(NODE)]
)
def test_each_peer_works_in_selected_revisions(peer: Peer, over: str) -> None:
    verify(peer, over, peer.few(over))


@pytest.mark.slow
@pytest.mark.parametrize(("peer", "over"), cases(NODE))
def test_each_peer_works_in_every_revision(peer: Peer, over: str) -> None:
    verify(peer, over, TRANSPORTS[over])


@pytest.mark.parametrize("over", ["stdio", "sse", "http"])
async def test_a_client_that_asks_for_a_stateless_revision_first_falls_back_to_the_handshake(over: str) -> None:
    report = Report("", LATEST, over)
    async with BY_NAME["TypeScript SDK 2, client"].serving([report]) as place:
        if isinstance(place, int):
            async with answering(report, place) as address:
                judge(report, "client", await look("probing", LATEST, over, address))
        else:
            judge(report, "client", await look("probing", LATEST, over, *FULL_SERVER, LATEST))
    assert not report.failures


@pytest.mark.parametrize(
    ("name", "over", "revision"),
    [
        ("TypeScript SDK 2, server", "stdio", STATELESS),
        ("TypeScript SDK 2, server", "http", STATELESS),
        ("server-everything (TypeScript SDK 1)", "stdio", LATEST),
        ("server-everything (TypeScript SDK 1)", "sse", LATEST),
        ("server-everything (TypeScript SDK 1)", "http", LATEST),
        ("server-filesystem (TypeScript SDK 1)", "stdio", LATEST),
    ],
)
async def test_our_clients_negotiate_the_revision_of_each_server(name: str, over: str, revision: str) -> None:
    assert await found(BY_NAME[name], over) == revision


async def test_a_server_that_still_sends_when_its_client_closes_exits_cleanly() -> None:
    started = stdio(node(), EVERYTHING, stderr=subprocess.DEVNULL)
    async with started as child, client(LATEST, ROOTS).connected(child):
        pass  # the server requests our roots shortly after
    assert child.process.returncode in (0, -signal.SIGTERM)
