"""`scaffold`: its output, the files that it leaves unchanged, and the next steps that it prints, run verbatim."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import sysconfig
from pathlib import Path
from unittest.mock import Mock

import anyio
import pytest

from mcp_bindgen import v2025_11_25
from mcp_bindgen.host import Host
from mcp_bindgen.scaffold.layout import tree
from tests.harness.commands import COMMAND, Done, execute, inside, snapshot
from tests.harness.effort import cases
from tests.harness.skeleton_clients import PATIENCE
from tests.harness.skeletons import VARIANTS, Variant
from tests.interop.processes import SDK_SERVER

EVERYTHING = [
    each for each in VARIANTS if each.name.endswith(("2025-11-25-all-stdio", "2025-11-25-all-stdio-contract"))
]
"""Variants: a server and a client, each with and without a contract."""

FOREIGN = "'npx -y @modelcontextprotocol/server-everything'"
"""Server that the next steps of a client name, as a word of a shell."""

PIP = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_COMPILE": "1"}
"""Environment variables that make `pip` quicker."""

by_name = pytest.mark.parametrize("variant", cases(EVERYTHING, quick=EVERYTHING[:1]), ids=lambda variant: variant.name)


def scaffold(variant: Variant, out: Path, *more: str) -> Done:
    """Run `mcp-bindgen scaffold` for a variant."""
    return inside("scaffold", *variant.options(out.parent / "contracts"), "--out", out, *more)


@by_name
def test_a_dry_run_writes_nothing_and_an_occupied_folder_is_refused(variant: Variant, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / variant.name).mkdir(parents=True)  # an empty folder is no obstacle
    dry = scaffold(variant, out, "--dry-run")
    assert (dry.returncode, dry.stderr, snapshot(out)) == (0, "", {})
    assert scaffold(variant, out).stdout.startswith(dry.stdout)
    files = snapshot(out)
    assert "\n".join(tree(str(out / variant.name), sorted(snapshot(out / variant.name)))) + "\n" == dry.stdout
    for more in ([], ["--dry-run"]):
        again = scaffold(variant, out, *more)
        assert (again.returncode, again.stdout, again.stderr.count("\n")) == (2, "", 1)
        assert "is not empty" in again.stderr
        assert snapshot(out) == files


@pytest.mark.full
@pytest.mark.parametrize("name", ["server-2025-11-25-all-stdio-contract", "client-2025-11-25-all-stdio"])
def test_the_printed_next_steps_run_in_a_shell(
    name: str, tmp_path: Path, own_wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host then uses the README's configuration from another folder. The folder's name has a space.

    The README completes the step that installs the project: it adds the wheel from which this package was installed.
    Only the server runs that step, which is the same for a client.
    """
    (variant,) = (each for each in EVERYTHING if each.name == name)
    found = Mock(**{"return_value.read_text.return_value": json.dumps({"url": own_wheel.as_uri(), "archive_info": {}})})
    monkeypatch.setattr("mcp_bindgen.scaffold.layout.distribution", found)
    out = tmp_path / "my projects"
    printed = scaffold(variant, out).stdout.splitlines()
    readme = (out / name / "README.md").read_text("utf-8")
    lines = [line.strip() for line in printed if line.startswith("    ") and "── " not in line]
    assert lines[2] == "python -m pip install --editable '.[dev]'"
    assert len(lines) == 4
    if variant.kind == "server":
        lines[2] += f" 'mcp-bindgen @ {own_wheel.as_uri()}'"
        assert f"    {lines[2].replace('python -m pip', '.venv/bin/pip')}\n" in readme
    else:
        del lines[2]
        assert lines[0].endswith(FOREIGN)
        lines[0] = lines[0].removesuffix(FOREIGN) + shlex.quote(shlex.join(SDK_SERVER))  # needs neither node nor npm
    script = "\n".join(lines)
    path = os.pathsep.join([str(fresh_environment(out / name / ".venv") / "bin"), os.environ["PATH"]])
    done = execute("bash", "-eu", "-c", script, cwd=tmp_path, PATH=path, **PIP, code=0)
    assert " passed" in done.stdout
    if variant.kind == "server":
        assert "Successfully installed mcp-bindgen-" in done.stdout
        assert anyio.run(hosted, readme, out) == [each["name"] for each in variant.document["tools"]]


def fresh_environment(folder: Path) -> Path:
    """Create a virtual environment that also finds the packages of this environment; return its folder."""
    execute(sys.executable, "-m", "venv", "--without-pip", folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    installed = sysconfig.get_path("purelib")
    (packages / "installed.pth").write_text(f"import site; site.addsitedir({installed!r})\n", "utf-8")
    (folder / "bin" / COMMAND.name).symlink_to(COMMAND)
    return folder


async def hosted(readme: str, out: Path) -> list[str]:
    """Return the names of the tools that a host finds with the `mcpServers` of a README."""
    (block,) = re.findall(r"```json\n(.*?)```", readme, re.DOTALL)
    file = out.parent / "host.json"
    file.write_text(block.replace("/path/to", str(out)), "utf-8")
    with anyio.fail_after(PATIENCE):
        async with Host.from_config(file, client=v2025_11_25.Client) as host:
            assert not host.failures
            return [offer.item.name for offer in await host.tools()]
