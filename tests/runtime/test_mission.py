"""A wheel of schema, generator, generated bindings and runtime stands alone: it compiles, and its projects run."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests.harness.commands import ROOT, Done
from tests.harness.effort import each
from tests.harness.installation import Installation, fresh, wheel
from tests.harness.processes import free_port, process

PARTS = ("schema", "generator", "generated", "runtime")
OTHERS = {path.parent.name for wing in ("features", "workbench") for path in (ROOT / wing).glob("*/*/__init__.py")}
FEATURES = "app|auth|cluster|docket|procrastinate|skills|telemetry"
"""Extras of packages that the wheel does not have."""

SHOWN = "weather\ntool: greet\n"
IMPORT_ALL = """
import importlib, pathlib, sys
site = pathlib.Path(sys.argv[1])
for path in sorted((site / "mcp_bindgen").rglob("*.py")):
    if path.stem != "__main__":
        importlib.import_module(".".join(path.relative_to(site).with_suffix("").parts).removesuffix(".__init__"))
"""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """Return an empty environment with the wheel, its own extras and pytest, which projects need for their tests."""
    folder = tmp_path_factory.mktemp("mission")
    source = folder / "source"
    for part in PARTS:  # packages of extensions have engines, which are features
        shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__", *engines(part)))
    for name in ("README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    settings = (ROOT / "pyproject.toml").read_text("utf-8")
    settings = re.sub(rf'^\w+ = "mcp_bindgen\.({"|".join(OTHERS)})\b.*\n', "", settings, flags=re.MULTILINE)
    settings = re.sub(rf"(?<=mcp-bindgen\[)({FEATURES}),|,({FEATURES})(?=[\],])", "", settings)
    (source / "pyproject.toml").write_text(settings, "utf-8")
    made = fresh(folder, f"{wheel(folder / 'dist', source)}[generate,http]", "pytest")
    there = {path.name for path in (made.site / "mcp_bindgen").iterdir()}
    assert {"spec", "emit", "runtime", "http", "bridging", "extension_abi", "v2025_11_25", "schema"} <= there
    assert not there & OTHERS
    return made


def engines(part: str) -> list[str]:
    """Return the names of folders with packages of extensions."""
    return ["extensions"] if part == "generated" else []


@pytest.mark.full
def test_every_module_of_the_wheel_can_be_imported(installation: Installation) -> None:
    done = installation.run("-c", IMPORT_ALL, installation.site)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.full
def test_bindings_are_generated_checked_and_compared(installation: Installation, tmp_path: Path) -> None:
    revisions = sorted(path.name for path in (ROOT / "schema").glob("20*") if path.is_dir())
    for revision in revisions:
        options = (revision, "--out", tmp_path / "own", "--package", "acme.mcp")
        for command, says in (("generate", "acme/mcp"), ("check", "in sync")):
            done = installation.bindgen(command, *options)
            assert (done.returncode, done.stderr) == (0, ""), done.stderr
            assert says in done.stdout
        shutil.rmtree(tmp_path / "own")
    for old, new in pairwise(revisions):
        done = installation.bindgen("diff", old, new)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"MCP {old} -> {new}" in done.stdout
    assert installation.bindgen("bridges", "--missing").stderr == "no rule is missing\n"


@pytest.mark.full
@each(  # a single test, because each process of a test run would build the installation
    ("revision", "option", "path"),
    [
        ("2024-11-05", "--sse", "/sse"),
        ("2025-11-25", "--http", "/mcp"),
        ("2026-07-28", "--http", "/mcp"),
    ],
)
def test_projects_run_over_stdio_and_http(
    installation: Installation, revision: str, option: str, path: str, tmp_path: Path
) -> None:
    folder = tmp_path / revision
    for kind, name, *options in (("server", "weather", "--style", "class"), ("client", "asker")):
        done = installation.bindgen("scaffold", kind, name, "--revision", revision, "--out", folder, *options)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider", folder / name)
        done = installation.run(*tests, PYTHONPATH=str(folder / name / "src"))
        assert done.returncode == 0, done.stdout
    source = folder / "weather" / "src"
    command = ["env", f"PYTHONPATH={source}", str(installation.python), "-m", "weather"]
    done = show(installation, folder, shlex.join(command))
    assert (done.returncode, done.stdout) == (0, SHOWN), done.stderr
    port = free_port()
    words = [str(installation.python), "-m", "weather", option, f"127.0.0.1:{port}"]
    with process(words, port, folder / "log", PYTHONPATH=str(source)):
        done = show(installation, folder, f"http://127.0.0.1:{port}{path}")
        assert (done.returncode, done.stdout) == (0, SHOWN), done.stderr


def show(installation: Installation, out: Path, target: str) -> Done:
    """Run the client of a project against a server."""
    return installation.run("-m", "asker", target, PYTHONPATH=str(out / "asker" / "src"))


@pytest.mark.full
def test_a_server_and_a_client_of_different_revisions_talk(installation: Installation, tmp_path: Path) -> None:
    for kind, name, revision in (("server", "weather", "2024-11-05"), ("client", "asker", "2026-07-28")):
        done = installation.bindgen("scaffold", kind, name, "--revision", revision, "--out", tmp_path)
        assert done.returncode == 0, done.stderr
    command = ["env", f"PYTHONPATH={tmp_path / 'weather' / 'src'}", str(installation.python), "-m", "weather"]
    done = show(installation, tmp_path, shlex.join(command))
    assert (done.returncode, done.stdout) == (0, SHOWN), done.stderr


@pytest.mark.full
def test_what_other_wings_provide_is_refused_with_the_fix(installation: Installation, tmp_path: Path) -> None:
    scaffolded = ("scaffold", "server", "weather", "--revision", "2025-11-25", "--out", tmp_path)
    done = installation.bindgen(*scaffolded, "--contract", "weather.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: contracts need the workbench, which is not installed; install all of mcp-bindgen\n"
    assert "No such command 'call'" in installation.bindgen("call").stderr
    assert installation.bindgen(*scaffolded).returncode == 0
    variables = {"PYTHONPATH": str(tmp_path / "weather" / "src"), "PATH": ""}
    for where, reason in (
        ("redis://127.0.0.1", "no store for redis:; installed: none"),
        ("events.db", "a store in a file needs mcp_bindgen.sqlite, which is missing; install all of mcp-bindgen"),
    ):
        command = [str(installation.python), "-m", "weather", "--http", "127.0.0.1:0", "--store", where]
        refused = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)
        assert refused.returncode == 2
        assert f"error: {reason}" in refused.stderr
