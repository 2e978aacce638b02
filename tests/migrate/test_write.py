"""`migrate --write` rewrites a server and a client of 2025-11-25, which then talk to each other in 2026-07-28."""

from __future__ import annotations

import json
import shutil
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import anyio
import pytest

from mcp_bindgen.testing import connected
from tests.support.commands import inside, snapshot

OLD, NEW = "2025-11-25", "2026-07-28"
LIBRARY = Path(__file__).parent / "library"

BY_HAND = [("client.py", "    await client.ping()\n", ""), ("client.py", '    await client.set_level("warning")\n', "")]
"""Edits by hand after `migrate --write`: file, old text, new text."""


def load(folder: Path, name: str) -> ModuleType:
    """Import a file of the library."""
    spec = spec_from_file_location(f"library_{name}", folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def visit(folder: Path) -> tuple[list[str], list[str], str]:
    """Have the client visit the server; return its notes, the questions that it was asked, and the revision."""

    async def run() -> tuple[list[str], list[str], str]:
        client = load(folder, "client")
        reader, library = client.Reader(), load(folder, "server").Library()
        async with connected(reader, library):
            notes = await client.visit(reader)
        return notes, reader.asked, reader.wire_revision

    return anyio.run(run)


@pytest.mark.full
def test_a_server_and_a_client_speak_the_new_revision_after_few_edits_by_hand(tmp_path: Path) -> None:
    folder = shutil.copytree(LIBRARY, tmp_path / "library", ignore=shutil.ignore_patterns("__pycache__"))
    assert sum(len(path.read_text("utf-8").splitlines()) for path in folder.iterdir()) > 350
    notes, asked, revision = visit(folder)
    assert revision == OLD
    report = json.loads(inside("migrate", OLD, NEW, folder, "--write", "--format", "json").stdout)
    assert report["edited"] == ["client.py", "server.py"]
    gone = [(Path(use["file"]).name, use["name"]) for use in report["uses"] if use["kind"] == "gone"]
    assert {("client.py", "Client.ping"), ("client.py", "Client.set_level")} < set(gone)
    assert len(BY_HAND) <= 3
    for name, old, new in BY_HAND:
        text = (folder / name).read_text("utf-8")
        assert text.count(old) == 1
        (folder / name).write_text(text.replace(old, new), "utf-8")
    assert visit(folder) == (notes, asked, NEW)


HEAD = "from mcp_bindgen.v2025_11_25 import Client, types as mcp\n"
EDITS = {
    "mcp.Tool(\n    name='x',  # one\n    execution=None,  # two\n)": "mcp.Tool(\n    name='x',  # one\n)",
    "mcp.Tool(execution=None, name='ö', input_schema=s)": "mcp.Tool(name='ö', input_schema=s)",
    "ö = 'ö'; x: mcp.RequestMeta; y: 'list[mcp.RequestMeta]'": None,
    "from mcp_bindgen.v2025_11_25.types import RequestMeta as M, Tool": None,
    "async def f(c: Client):\n    await c.notify_roots_list_changed()": "async def f(c: Client):\n    pass",
}
"""Code -> the code after `--write`; None if only the name of a class changes."""


@pytest.mark.full
def test_edits_keep_comments_and_layout(tmp_path: Path) -> None:
    for number, code in enumerate(EDITS):
        (tmp_path / f"code{number}.py").write_text(f"{HEAD}{code}\n", "utf-8")
    inside("migrate", OLD, NEW, tmp_path, "--write")
    for number, (code, after) in enumerate(EDITS.items()):
        expected = after if after is not None else code.replace("RequestMeta", "RequestMetaObject")
        found = (tmp_path / f"code{number}.py").read_text("utf-8")
        assert found == f"{HEAD}{expected}\n".replace("v2025_11_25", "v2026_07_28"), code
    before = snapshot(tmp_path)
    assert inside("migrate", OLD, NEW, tmp_path, "--write").returncode == 0
    assert snapshot(tmp_path) == before, "a second run has nothing to write"
