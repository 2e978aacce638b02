"""The compiler accepts the packages and finds deliberate mistakes; adapters connect them with the official SDK."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from mcp_bindgen.http.client.transport import http
from mcp_bindgen.runtime import ProtocolError
from mcp_bindgen.runtime.transports.stdio import stdio
from tests.interop.ours import ROOTS, client
from tests.interop.processes import FULL_SERVER, free_port, listening, node
from tests.typescript.packages import project

pytestmark = pytest.mark.full
REVISIONS = {"stateful": "2025-11-25", "stateless": "2026-07-28"}
CASES = [("sdk", "stateful", "stdio"), ("sdk", "stateful", "http")]
"""Major version of the SDK, era, transport; 1.x has one era."""


def test_the_compiler_accepts_all_packages_and_finds_every_mistake() -> None:
    folder = project()
    compiler = folder / "node_modules" / "typescript" / "bin" / "tsc"
    done = subprocess.run([node(), str(compiler), "-p", str(folder)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("sdk", "era", "transport"),
    [*CASES, ("client", "stateful", "stdio"), ("client", "stateless", "stdio"), ("client", "stateless", "http")],
)
async def test_clients_of_typescript_talk_to_servers_of_python(sdk: str, era: str, transport: str) -> None:
    revision, port = REVISIONS[era], free_port()
    command = [node(), str(project() / "programs" / "client.ts"), sdk, era, transport]
    if transport == "stdio":
        found = await _output(*command, *FULL_SERVER, revision)
    else:
        async with listening(*FULL_SERVER, revision, "--http", f"127.0.0.1:{port}", port=port):
            found = await _output(*command, f"http://127.0.0.1:{port}/mcp")
    assert {"add", "sample", "say"} <= {*found["tools"]}
    assert found["added"]["structuredContent"] == {"sum": 5}
    assert found["added"].get("resultType") == ("complete" if era == "stateless" else None)
    assert json.loads(found["sampled"]["content"][0]["text"]) == {"model": "fake", "text": "Hi."}
    assert found["said"]["content"] == [{"type": "text", "text": "words"}]
    assert found["read"]["contents"] == [{"uri": "test://a", "mimeType": "text/plain", "text": "alpha"}]
    assert found["unknown"] == -32602
    assert found["completion"]["completion"]["values"] == ["formal", "friendly"]
    assert found["heard"] == [{"text": "words"}, "words"]


@pytest.mark.parametrize(
    ("sdk", "era", "transport"),
    [*CASES, ("server", "stateful", "stdio"), ("server", "stateless", "stdio"), ("server", "stateless", "http")],
)
async def test_clients_of_python_talk_to_servers_of_typescript(sdk: str, era: str, transport: str) -> None:
    async with _served(sdk, era, transport) as asker:
        assert [tool.name for tool in (await asker.list_tools()).tools] == ["echo", "sample"]
        assert (await asker.call_tool("echo", {"text": "hi"})).structured_content == {"text": "hi"}
        assert (await asker.call_tool("sample")).content[0].text == "fake"
        assert [prompt.name async for prompt in asker.iter_prompts()] == ["greet"]
        refused = ("nothing", -32602, "unknown tool"), ("invalid", -32603, "/content: must be an array")
        for name, code, words in refused:
            with pytest.raises(ProtocolError) as caught:
                await asker.call_tool(name)
            assert caught.value.code == code
            assert words in str(caught.value)


@asynccontextmanager
async def _served(sdk: str, era: str, transport: str) -> AsyncGenerator[Any]:
    """A client of ours, connected with a server of TypeScript."""
    command = (node(), str(project() / "programs" / "server.ts"), sdk)
    asker = client(REVISIONS[era], ROOTS)
    if transport == "stdio":
        async with asker.connected(stdio(*command, "stdio"), exactly=True):
            yield asker
        return
    port = free_port()
    far = http(f"http://127.0.0.1:{port}/mcp")
    async with listening(*command, str(port), port=port), asker.connected(far, exactly=True):
        yield asker


async def _output(*command: str) -> dict[str, Any]:
    done = await anyio.run_process(command, stderr=sys.stderr.fileno(), stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0
    found: dict[str, Any] = json.loads(done.stdout)
    return found
