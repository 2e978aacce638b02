"""`mcp-bindgen gateway`: losses, options, foreign hosts, and the page."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mcp_bindgen import v2024_11_05, v2026_07_28
from mcp_bindgen.runtime import UnsupportedRevision, connect
from tests.harness.commands import COMMAND, ROOT, inside
from tests.harness.forks import PYTHON
from tests.harness.pages import blocks
from tests.interop.processes import free_port, listening

PAGE = ROOT / "docs" / "how-to" / "gateway.md"


@pytest.fixture
def notes(tmp_path: Path) -> str:
    file = next(block for block in blocks(PAGE) if block.name == "notes.py")
    (tmp_path / "notes.py").write_text(file.text, "utf-8")
    return shlex.join([PYTHON, str(tmp_path / "notes.py")])


def test_bad_input_is_reported_in_one_line(notes: str) -> None:
    for words, reason in (
        (["/no/such/program"], "cannot connect to '/no/such/program'"),
        ([notes, "--serve", "2031-01-01"], "2031-01-01 cannot be served; there are 2024-11-05"),
        ([notes, "--serve", ","], "--serve names nothing"),
        ([notes, "python"], "unexpected argument 'python'"),
    ):
        done = inside("gateway", *words)
        assert (done.returncode, reason in done.stderr.splitlines()[-1]) == (2, True)


@pytest.mark.full
async def test_only_the_stated_revisions_are_served(notes: str) -> None:
    gateway = [str(COMMAND), "gateway", notes, "--serve", "2026-07-28"]
    async with connect(gateway, v2026_07_28.Client, exactly=True, stderr=subprocess.DEVNULL) as client:
        assert (await client.call_tool("count", {})).structured_content == {"count": 2}
    with pytest.raises(UnsupportedRevision):
        async with connect(gateway, v2024_11_05.Client, exactly=True, stderr=subprocess.DEVNULL):
            pass


@pytest.mark.full
async def test_http_requests_for_foreign_hosts_or_origins_are_refused(notes: str) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    async with listening(str(COMMAND), "gateway", notes, "--http", f"127.0.0.1:{port}", port=port):
        for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
            response = httpx2.post(url, json={}, headers=headers, timeout=60)
            assert response.status_code in (403, 421), response.text
        for package in (v2024_11_05, v2026_07_28):
            client: Any = package.Client()
            async with client.connected(url, exactly=True) as connected:
                assert (await connected.call_tool("count", {})).content[0].text == "2 notes"


def test_the_documentation_page_names_real_options() -> None:
    text = inside("gateway", "--help").stdout
    for option in set(re.findall(r"--[a-z][a-z-]+", PAGE.read_text("utf-8"))) - {"--revision"}:
        assert option in text, option
