"""Transports and stores of installed distributions, found through entry points only for their URLs and options."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.harness.checked_connections import INITIALIZED, initialize, request, until
from tests.harness.commands import ROOT, Done, execute
from tests.harness.forks import PYTHON

SERVER = """
import sys
from mcp_bindgen.runtime import run
from unix_socket import Upper
run(Upper(), revisions=["2025-11-25"])
"""

CLIENT = """
import sys, anyio
from mcp_bindgen.runtime import connect
from mcp_bindgen.v2025_11_25 import Client

async def main():
    async with connect(sys.argv[1], Client) as client:
        result = await client.call_tool("upper", {"text": "hello"})
        print(result.content[0].text)

anyio.run(main)
"""

PAGE = (ROOT / "docs" / "reference" / "transports.md").read_text("utf-8")
ACME = textwrap.dedent(PAGE.partition("```python\n")[2].partition("   ```\n")[0])
"""The module on the documentation page about transports."""


def install(site: Path, distribution: str, code: str, **groups: str) -> None:
    """Install a distribution with one module, and with an entry point in each group."""
    module = distribution.replace("-", "_")
    (site / f"{module}.py").write_text(code, "utf-8")
    info = site / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n", "utf-8")
    points = "".join(f"[mcp_bindgen.{group}]\n{module} = {module}:{name}\n" for group, name in groups.items())
    (info / "entry_points.txt").write_text(points, "utf-8")


def search(site: Path) -> dict[str, str]:
    """Return the environment of programs that import distributions from a folder."""
    return {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT / "examples")])}


def run(site: Path, program: str, *arguments: object, stdin: str = "") -> Done:
    return execute(PYTHON, "-c", program, *arguments, stdin=stdin, cwd=None, code=None, **search(site))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder with an installed transport for `acme:` and `--acme`."""
    (tmp_path / "site").mkdir()
    install(tmp_path / "site", "acme-transport", ACME, transports="TRANSPORT")
    return tmp_path / "site"


async def test_an_installed_transport_serves_its_option_and_opens_its_urls(site: Path, tmp_path: Path) -> None:
    path = tmp_path / "s"
    server = subprocess.Popen([PYTHON, "-c", SERVER, "--acme", str(path)], env={**os.environ, **search(site)})
    try:
        await until(lambda: path.exists() or server.poll() is not None)
        done = run(site, CLIENT, f"acme://{path}")
        assert (done.returncode, done.stdout) == (0, "HELLO\n"), done.stderr
    finally:
        server.kill()
        server.wait()


@pytest.mark.full
def test_options_of_installed_transports_are_listed_and_exclude_each_other(site: Path, tmp_path: Path) -> None:
    shown = run(site, SERVER, "--help").stdout
    for option in ("--acme PATH", "--http HOST:PORT", "--sse HOST:PORT", "--store WHERE", "--log-format"):
        assert option in shown
    done = run(site, SERVER, "--acme", tmp_path / "s", "--http", "127.0.0.1:0")
    assert done.returncode == 2
    assert "the options choose several transports; choose one" in done.stderr
    done = run(site, SERVER, "--http", "127.0.0.1:0", "--sse", "127.0.0.1:0")
    assert "not allowed with argument --http" in done.stderr


@pytest.mark.full
def test_an_unknown_url_scheme_is_named_in_the_error(site: Path) -> None:
    done = run(site, CLIENT, "wss://example.com/mcp")
    assert "ValueError: no transport for wss:; installed: acme:, http:, https:" in done.stderr


@pytest.mark.full
def test_two_distributions_with_the_same_scheme_or_option_are_an_error(site: Path) -> None:
    install(site, "other", ACME, transports="TRANSPORT")
    done = run(site, CLIENT, "acme:///tmp/x")
    assert "ValueError: acme-transport and other both have a transport for acme:; uninstall one" in done.stderr
    done = run(site, SERVER, "--acme", "x")
    assert done.returncode == 2
    assert "adds an option of another distribution: argument --acme" in done.stderr


def test_a_transport_that_cannot_be_imported_is_skipped_and_reported(site: Path) -> None:
    install(site, "broken", "import nothing_of_this_name\n", transports="TRANSPORT")
    done = run(site, CLIENT, "wss://x")
    assert "the transport broken of broken is left out: No module named 'nothing_of_this_name'" in done.stderr
    assert "no transport for wss:; installed: acme:, http:, https:" in done.stderr


NEVER = """
import importlib.metadata
known = importlib.metadata.entry_points

def entry_points(group):  # libraries scan groups of their own
    assert not group.startswith("mcp_bindgen."), "installed packages are scanned"
    return known(group=group)

importlib.metadata.entry_points = entry_points
"""


@pytest.mark.full
def test_without_an_option_or_a_url_no_installed_package_is_scanned(site: Path) -> None:
    first = [initialize("2025-11-25"), INITIALIZED, request(2, "tools/list")]
    done = run(site, NEVER + SERVER, stdin="".join(f"{json.dumps(message)}\n" for message in first))
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0, 2], done.stderr
    assert "installed packages are scanned" in run(site, NEVER + SERVER, "--log-format", "text").stderr
    started = shlex.join([PYTHON, "-c", f"import sys; sys.path[:0] = {[str(ROOT / 'examples')]}\n{SERVER}"])
    done = run(site, NEVER + CLIENT, started)
    assert (done.returncode, done.stdout) == (0, "HELLO\n"), done.stderr
    assert "installed packages are scanned" in run(site, NEVER + CLIENT, "http://127.0.0.1:1/mcp").stderr


def test_built_in_entry_points_load_no_third_party_packages(site: Path) -> None:
    program = """
import sys
import mcp_bindgen.http.transport, mcp_bindgen.cluster.entry_point, mcp_bindgen.sqlite.entry_point
loaded = {name.partition(".")[0] for name in sys.modules}
print(*sorted(loaded & {"httpx2", "starlette", "uvicorn", "redis", "sqlite3", "uvloop"}))
parts = ("mcp_bindgen.http.", "mcp_bindgen.cluster.", "mcp_bindgen.sqlite.")
print(*sorted(name for name in sys.modules if name.startswith(parts)))
"""
    done = run(site, program)
    entries = "mcp_bindgen.cluster.entry_point mcp_bindgen.http.transport mcp_bindgen.sqlite.entry_point"
    assert done.stdout == f"\n{entries}\n", done.stderr


STORE = """
class Store:
    schemes = ("acme",)

    def open(self, url):
        raise ValueError("the store was opened")

STORE = Store()
"""


@pytest.mark.full
def test_an_installed_store_opens_its_urls(site: Path) -> None:
    install(site, "acme-store", STORE, stores="STORE")
    done = run(site, SERVER, "--http", "127.0.0.1:0", "--store", "acme://host")
    assert done.returncode == 2
    assert "error: the store was opened" in done.stderr
    done = run(site, SERVER, "--http", "127.0.0.1:0", "--store", "mysql://user:pw@host")
    assert "error: no store for mysql:; installed: acme:, file:, redis:, rediss:, unix:" in done.stderr
    assert "pw" not in done.stderr
