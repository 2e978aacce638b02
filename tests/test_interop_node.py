"""The TypeScript SDKs, reference servers and the Inspector talk to us, in every revision, over stdio and SSE.

They are npm packages: `tests/interop/package.json` names them, `.ci/run` installs them. What a conversation tries is in
`interop/`, step by step: `everything.py`, `typescript.py` (with `node_client.mjs`) and `inspector.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from mcp_bindgen.runtime.stdio import stdio

from .interop.everything import EVERYTHING
from .interop.matrix import verify
from .interop.ours import ROOTS, client
from .interop.peers import NODE, Peer, answering, cases
from .interop.processes import FULL_SERVER, MODULES, node
from .interop.report import REVISIONS, Report
from .interop.typescript import judge, look
from .wire import bounded

pytestmark = pytest.mark.flaky(reruns=1)  # foreign processes on a busy machine may be slow once


@pytest.fixture(autouse=True)
def packages() -> None:
    """Only where the packages are installed; in CI they must be."""
    if not MODULES.is_dir():
        missing = "the npm packages are not installed: npm ci --prefix tests/interop"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)


@pytest.mark.parametrize(
    ("peer", "revision", "over"), [pytest.param(*case, id="-".join((case[0].name, *case[1:]))) for case in cases(NODE)]
)
def test_everything_works_with(peer: Peer, revision: str, over: str) -> None:
    verify(peer, revision, over)


@pytest.mark.parametrize("over", ["stdio", "sse"])
@bounded()
async def test_a_client_that_asks_for_a_stateless_revision_first_gets_our_newest(over: str) -> None:
    report = Report("", REVISIONS[-1], over)
    if over == "stdio":
        saw = await look("probing", report.revision, "stdio", *FULL_SERVER, "all")
    else:
        async with answering(report, "all") as url:
            saw = await look("probing", report.revision, "sse", url)
    judge(report, "client", saw)
    assert not report.failures


@bounded()
async def test_a_server_that_still_speaks_when_we_leave_does_not_fail() -> None:
    started = stdio(node(), EVERYTHING, stderr=subprocess.DEVNULL)
    async with started as child, client(REVISIONS[-1], ROOTS).connected(child):
        pass  # it asks for our roots a little later
    assert child.process.returncode in (0, -signal.SIGTERM)
