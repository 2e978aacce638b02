"""Generated skeletons run in an installation without `features/`, on the kernel and HTTP alone."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness.commands import ROOT, Done, inside
from tests.harness.effort import each
from tests.harness.installation import Installation, installed, wheel
from tests.harness.processes import free_port, process

PARTS = ("generator", "runtime", "generated", "schema")
SHOWN = "weather\ntool: greet\n"


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """Return an environment with the wheel of a checkout that has no `features/`."""
    folder = tmp_path_factory.mktemp("thin")
    source = folder / "source"
    for part in PARTS:
        shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    features = {path.name for path in (ROOT / "features" / "mcp_bindgen").iterdir()}
    own = re.compile(rf'^\w+ = "mcp_bindgen\.({"|".join(features)})\b.*\n', re.MULTILINE)  # entry points of features
    (source / "pyproject.toml").write_text(own.sub("", (ROOT / "pyproject.toml").read_text("utf-8")), "utf-8")
    made = installed(folder, wheel(folder / "dist", source))
    there = {path.name for path in (made.site / "mcp_bindgen").iterdir()}
    assert {"runtime", "http", "v2025_11_25"} <= there
    assert not there & features
    return made


def show(installation: Installation, out: Path, target: str) -> Done:
    """Run the client skeleton against a server."""
    return installation.run("-m", "asker", target, PYTHONPATH=str(out / "asker" / "src"))


@pytest.mark.full
@each(  # a single test, because each process of a test run would build the installation
    ("revision", "option", "path"),
    [("2024-11-05", "--sse", "/sse"), ("2025-11-25", "--http", "/mcp"), ("2026-07-28", "--http", "/mcp")],
)
def test_skeletons_run_over_stdio_and_http(
    installation: Installation, revision: str, option: str, path: str, tmp_path: Path
) -> None:
    folder = tmp_path / revision
    for kind, name in (("server", "weather"), ("client", "asker")):
        done = inside("scaffold", kind, name, "--revision", revision, "--out", folder)
        assert done.returncode == 0, done.stderr
    source = folder / "weather" / "src"
    command = ["env", f"PYTHONPATH={source}", str(installation.python), "-m", "weather"]
    done = show(installation, folder, shlex.join(command))
    assert (done.returncode, done.stdout) == (0, SHOWN), done.stderr
    port = free_port()
    words = [str(installation.python), "-m", "weather", option, f"127.0.0.1:{port}"]
    with process(words, port, folder / "log", PYTHONPATH=str(source)):
        done = show(installation, folder, f"http://127.0.0.1:{port}{path}")
        assert (done.returncode, done.stdout) == (0, SHOWN), done.stderr


@pytest.mark.full
def test_a_store_url_is_refused_if_no_store_is_installed(installation: Installation, tmp_path: Path) -> None:
    done = inside("scaffold", "server", "weather", "--revision", "2025-11-25", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    command = [str(installation.python), "-m", "weather", "--http", "127.0.0.1:0", "--store", "redis://127.0.0.1"]
    variables = {"PYTHONPATH": str(tmp_path / "weather" / "src"), "PATH": ""}
    refused = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2
    assert "error: no store for redis:; installed: none" in refused.stderr
