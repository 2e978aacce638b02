"""Conversations with the official Python SDK in every revision, over stdio, SSE and Streamable HTTP.

`interop/ours.py` has the steps of our client, `interop/sdk_client.py` has the steps of the SDK's client.
"""

from __future__ import annotations

import pytest

from tests.interop.matrix import verify
from tests.interop.peers import PYTHON, TRANSPORTS, Peer, answering, cases, found
from tests.interop.processes import FULL_SERVER
from tests.interop.report import STATEFUL, STATELESS, STEP, Report

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
SERVER, CLIENT = PYTHON
QUICK = [(CLIENT, "http")]
"""The conversations that `make test` runs."""
LATEST = STATEFUL[-1]


@pytest.mark.parametrize(
    ("peer", "over"),
    [
        pytest.param(peer, over, id=f"{peer.name}-{over}", marks=[] if (peer, over) in QUICK else pytest.mark.full)
        for peer, over in cases(PYTHON)
    ],
)
def test_each_peer_works_in_selected_revisions(peer: Peer, over: str) -> None:
    verify(peer, over, peer.few(over))


@pytest.mark.slow
@pytest.mark.parametrize(("peer", "over"), cases(PYTHON))
def test_each_peer_works_in_every_revision(peer: Peer, over: str) -> None:
    verify(peer, over, TRANSPORTS[over])


@pytest.mark.full
@pytest.mark.parametrize("over", ["stdio", "sse", "http"])
async def test_a_client_that_asks_for_a_stateless_revision_first_falls_back_to_the_handshake(over: str) -> None:
    from mcp import Client, StdioServerParameters, types
    from mcp.client.sse import sse_client
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client

    async def use(client: Client) -> None:
        async with client:
            assert client.session.protocol_version == LATEST
            (block,) = (await client.call_tool("echo", {"text": "here"})).content
            assert isinstance(block, types.TextContent)
            assert block.text == "here"

    report = Report("", LATEST, over)
    async with CLIENT.serving([report]) as place:
        if isinstance(place, int):
            async with answering(report, place) as address:
                way = sse_client(address, timeout=STEP) if over == "sse" else streamable_http_client(address)
                await use(Client(way))
        else:
            command, *arguments = FULL_SERVER
            await use(Client(stdio_client(StdioServerParameters(command=command, args=[*arguments, LATEST]))))
    assert not report.failures


@pytest.mark.full
@pytest.mark.parametrize(("over", "revision"), [("stdio", STATELESS), ("sse", LATEST), ("http", STATELESS)])
async def test_our_clients_negotiate_the_revision_of_the_sdk_server(over: str, revision: str) -> None:
    assert await found(SERVER, over) == revision
