"""The kernel looks for the conversion between revisions when a peer speaks a foreign revision, and does without it."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from mcp_bindgen import v2024_11_05, v2025_11_25, v2026_07_28
from mcp_bindgen.runtime import UnsupportedRevision, serve
from mcp_bindgen.runtime.protocol.bridging import BRIDGING, MISSING
from mcp_bindgen.runtime.session.service import Service
from mcp_bindgen.runtime.transports.memory import pair
from tests.support.checked_connections import running
from tests.support.commands import execute
from tests.support.effort import cases

LOADED = """
import json, sys
from mcp_bindgen.{package} import Server
from mcp_bindgen.runtime.session.service import Service
from mcp_bindgen.runtime.protocol.transport import Transport
peer = Service([Server()]).session(type("T", (Transport,), {{}})()).peer
def loaded():
    return any(name.startswith("mcp_bindgen.bridging") for name in sys.modules)
found = []
for message in {messages}:
    peer.receive(json.dumps(message).encode())
    found.append([loaded(), peer.dispatcher.revision.name])
print(json.dumps(found))
"""
META = "io.modelcontextprotocol/protocolVersion"


def initialize(revision: str) -> dict[str, Any]:
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


def list_tools(**meta: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": meta} if meta else {}}


CONVERSATIONS: list[Any] = [
    ("v2025_11_25", [initialize("2025-11-25"), list_tools()], [[False, "2025-11-25"]] * 2),
    ("v2025_11_25", [initialize("2024-11-05")], [[True, "2024-11-05"]]),
    ("v2025_11_25", [initialize("1999-01-01")], [[True, "2025-11-25"]]),
    (
        "v2025_11_25",
        [initialize("2025-11-25"), list_tools(**{META: "2026-07-28"})],
        [[False, "2025-11-25"], [True, "2025-11-25"]],
    ),
    ("v2026_07_28", [list_tools(**{META: "2026-07-28"})], [[False, "2026-07-28"]]),
    ("v2026_07_28", [initialize("2025-11-25")], [[True, "2025-11-25"]]),
]
"""A package of bindings, messages, and after each whether conversions are loaded, and the revision."""


@pytest.mark.parametrize(("package", "messages", "expected"), cases(CONVERSATIONS, quick=CONVERSATIONS[:2]))
def test_conversion_is_loaded_for_foreign_revisions_only(
    package: str, messages: list[Any], expected: list[list[Any]]
) -> None:
    done = execute(sys.executable, "-c", LOADED.format(package=package, messages=messages))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == expected


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the conversion between revisions."""
    monkeypatch.setattr(BRIDGING, "objects", ())


@pytest.mark.usefixtures("without")
def test_a_server_serves_its_own_revision() -> None:
    service = Service([v2025_11_25.Server()])
    assert service.supported == ["2025-11-25"]
    with pytest.raises(ValueError, match=f"1999-01-01 cannot be served; {MISSING}; there are 2025-11-25"):
        Service([v2025_11_25.Server()], revisions=["1999-01-01", "2025-11-25"])


@pytest.mark.usefixtures("without")
@pytest.mark.parametrize("package", [v2024_11_05, v2026_07_28])
async def test_a_client_speaks_its_own_revision(package: Any) -> None:
    left, right = pair()
    async with running(serve(right, v2025_11_25.Server())):
        with pytest.raises(UnsupportedRevision, match=rf"{package.Client.revision} \({MISSING}\)"):
            async with package.Client().connected(left):
                pass
