"""The official Python SDK talks to us, in every revision that it speaks, over stdio and SSE.

What a conversation tries is in `interop/`, step by step: `interop/ours.py` has the steps of our client,
`interop/sdk_client.py` those of the SDK's.
"""

from __future__ import annotations

import pytest
from mcp import Client, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client

from .interop.matrix import verify
from .interop.peers import PYTHON, Peer, answering, cases
from .interop.processes import FULL_SERVER
from .interop.report import REVISIONS, Report
from .wire import bounded

pytestmark = pytest.mark.flaky(reruns=1)  # foreign processes on a busy machine may be slow once


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize(
    ("peer", "revision", "over"),
    [pytest.param(*case, id="-".join((case[0].name, *case[1:]))) for case in cases(PYTHON)],
)
def test_everything_works_with(peer: Peer, revision: str, over: str) -> None:
    verify(peer, revision, over)


@pytest.mark.parametrize("over", ["stdio", "sse"])
@bounded()
async def test_a_client_that_asks_for_a_stateless_revision_first_gets_our_newest(over: str) -> None:
    report = Report("", REVISIONS[-1], over)

    async def use(client: Client) -> None:
        async with client:
            assert client.session.protocol_version == REVISIONS[-1]
            (block,) = (await client.call_tool("echo", {"text": "here"})).content
            assert isinstance(block, types.TextContent)
            assert block.text == "here"

    if over == "stdio":
        command, *arguments = FULL_SERVER
        await use(Client(stdio_client(StdioServerParameters(command=command, args=[*arguments, "all"]))))
    else:
        async with answering(report, "all") as url:
            await use(Client(sse_client(url)))
        assert not report.failures
