"""Tasks: the TypeScript tasks client with our server, and our client with FastMCP's server."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from mcp_bindgen.extensions.tasks import TaskCancelled
from mcp_bindgen.v2026_07_28 import types as mcp
from mcp_bindgen.v2026_07_28.extensions import tasks
from tests.harness.commands import ROOT
from tests.harness.forks import PYTHON
from tests.interop import fetched
from tests.interop.processes import HERE, free_port, listening, needed, node

SERVER = (PYTHON, str(ROOT / "examples" / "conformance_server.py"))
FASTMCP = """
fastmcp-tasks==4.1.2 fastmcp-slim==4.1.2 Authlib==1.9.9 aiofile==3.12.3 caio==0.12.10 cyclopts==5.4.0 dnspython==2.9.2
email-validator==2.4.0 exceptiongroup==1.3.1 griffelib==2.4.1 jsonref==1.1.0 jsonschema-path==0.5.0
openapi-pydantic==0.6.0 pathable==0.6.0 py-key-value-aio==0.4.6 pydantic-settings==2.16.3 pyperclip==1.11.0
python-dotenv==1.2.4 rich-rst==2.2.0 websockets==17.4
"""
"""FastMCP's tasks package and its dependencies that are not installed here."""

DONE = {"kind": "task", "status": "completed", "asked": 0}
IN_BOTH: dict[str, dict[str, Any]] = {
    "greet": {"kind": "immediate", "status": "completed", "asked": 0, "text": "Hello, Ada!"},
    "slow_compute": DONE | {"text": "quick took 0.2 seconds"},
    "cancelled": {"kind": "task", "status": "cancelled", "asked": 0},
    "resumed": DONE | {"text": "resumed took 1 seconds"},
}
"""Call -> its outcome in both revisions."""

ENDS: dict[str, dict[str, dict[str, Any]]] = {
    "2026-07-28": IN_BOTH
    | {
        "failing_job": DONE | {"text": "The job has failed"},
        "protocol_error_job": {"kind": "task", "status": "failed", "asked": 0, "message": "The job cannot be done"},
        "confirm_delete": DONE | {"asked": 1, "text": "notes.txt: deleted"},
        "multi_input": DONE | {"asked": 2, "text": "confirm: True, name: Ada"},
        "test_tool_with_task": DONE | {"asked": 1, "text": "Hello, Ada!"},
    },
    "2025-11-25": IN_BOTH
    | {
        "failing_job": {"kind": "task", "status": "failed", "asked": 0, "message": "the tool failed"},
        "protocol_error_job": {"kind": "task", "status": "failed", "asked": 0, "message": "The job cannot be done"},
    },
}
"""Revision -> the outcomes of all calls."""


@pytest.mark.parametrize("revision", ["2026-07-28", pytest.param("2025-11-25", marks=pytest.mark.full)])
async def test_the_typescript_tasks_client_gets_every_outcome(revision: str) -> None:
    needed("@modelcontextprotocol/ext-tasks")
    port = free_port()
    async with listening(*SERVER, "--port", str(port), port=port):
        command = [node(), str(HERE / "tasks_client.mjs"), revision, f"http://127.0.0.1:{port}/mcp"]
        done = await anyio.run_process(command, stderr=None)
    saw: dict[str, Any] = json.loads(done.stdout)
    assert saw.pop("capabilities")["cancellation"]
    assert {name: _told(one) for name, one in saw.items()} == ENDS[revision]


def _told(saw: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a call's outcome that the test compares."""
    if "thrown" in saw:
        return saw
    said = {name: saw[name] for name in ("kind", "status", "text", "message") if name in saw}
    return said | {"asked": len(saw["asked"])}


@asynccontextmanager
async def fastmcp() -> AsyncGenerator[str]:
    """Run a server of FastMCP; yield its URL."""
    place, port = fetched.folder("fastmcp-tasks-4.1.2", *FASTMCP.split()), free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(place), os.environ.get("PYTHONPATH", "")]))
        patch.setenv("FASTMCP_CHECK_FOR_UPDATES", "off")
        async with listening(PYTHON, str(HERE / "fastmcp_server.py"), port=port):
            yield f"http://127.0.0.1:{port}/mcp"


class Asked(tasks.Client):
    """Client that accepts and counts elicitations."""

    asked = 0

    def on_elicit(self, params: mcp.ElicitRequestParams, ctx: Any) -> mcp.ElicitResult:
        self.asked += 1
        return mcp.ElicitResult(action="accept", content={"confirm": True})


@pytest.mark.full
async def test_our_client_waits_for_the_tasks_of_fastmcp() -> None:
    async with fastmcp() as url, Asked.connect(url) as client:
        for name, arguments, expected in (
            ("greet", {"name": "Ada"}, "Hello, Ada!"),
            ("slow_compute", {"seconds": 0.2}, "slept 0.2"),
            ("failing_job", {}, "The job has failed"),
            ("confirm_delete", {"filename": "notes.txt"}, "notes.txt: {'confirm': True}"),
        ):
            result = await client.call_tool(name, arguments)
            block = result.content[0]
            assert isinstance(block, mcp.TextContent)
            assert block.text == expected
            assert bool(result.is_error) == (name == "failing_job")
        assert client.asked == 1
        task = await client.start_tool("slow_compute", {"seconds": 3600})
        assert (await client.task(task.id).status()).status == "working"
        await task.cancel()
        with pytest.raises(TaskCancelled):
            await task.result()
