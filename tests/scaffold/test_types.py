"""All kinds of generated code type-check under pyright in strict mode; one run checks them, since it starts slowly."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mcp_bindgen.spec.toml import read_toml
from tests.contract.code.test_contract_package import write_packages
from tests.contract.code.test_hostile_contracts import write_hostile
from tests.contract.code.test_real_servers import REAL, meet
from tests.contract.code.test_typed_client import write_clients
from tests.harness.commands import execute, save
from tests.harness.shared import filled, shared_folder
from tests.harness.skeletons import EVERY_VARIANT, VARIANTS, Variant, Workshop
from tests.scaffold.test_expressions import write_values
from tests.scaffold.test_from_module import write_trips
from tests.scaffold.test_project import write_new_projects
from tests.scaffold.upgrade.test_projects import write_upgraded

pytestmark = pytest.mark.full

WRITERS: list[Callable[[Path], object]] = [
    write_clients,
    write_hostile,
    write_new_projects,
    write_packages,
    write_trips,
    write_upgraded,
    write_values,
]
"""Functions that fill a shared folder with code."""

LEFT_OUT = ["*_clients/*/server.py", "*_hostile/echo_server.py", "*_trips/tools.py", "**/tests/test_calls.py"]
"""Modules of the tests."""


@pytest.mark.parametrize("variants", [VARIANTS, pytest.param(EVERY_VARIANT, marks=pytest.mark.slow)], ids=len)
def test_generated_code_type_checks_and_upgrades_list_all_errors(
    variants: Sequence[Variant], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An upgraded project has errors on the lines that `upgrade` lists, and only there.

    Errors that follow from an unknown type count only in projects that were not upgraded.
    """
    folder = shared_folder(tmp_path_factory)
    code = [filled(tmp_path_factory, write) for write in WRITERS]
    code += [meet(tmp_path_factory, real).clients for real in REAL if real.is_needed]
    workshop = Workshop(folder / "skeletons")
    projects = [workshop.project(variant).folder for variant in variants]
    projects += [path.parent for each in code for path in each.glob("*/pyproject.toml")]
    names = [path.relative_to(folder).as_posix() for path in [*projects, *code]]
    environments = [{"root": name, "extraPaths": [f"{name}/src"]} for name in names]
    own = read_toml(projects[0] / "pyproject.toml")["tool"]["pyright"]  # the settings of every new project
    settings = {**own, "include": names, "exclude": LEFT_OUT, "extraPaths": []}
    config = save(folder / "pyrightconfig.json", {**settings, "executionEnvironments": environments})
    done = execute(sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", config)
    report = json.loads(done.stdout)
    modules = {path for each in [*code, *projects] for path in each.rglob("*.py")}
    left_out = {path for pattern in LEFT_OUT for path in folder.glob(pattern)}
    assert report["summary"]["filesAnalyzed"] == len(modules - left_out)

    upgraded = code[WRITERS.index(write_upgraded)]
    found: set[str] = set()
    others: list[str] = []
    for one in (one for one in report["generalDiagnostics"] if one["severity"] == "error"):
        place = f"{one['file']}:{one['range']['start']['line'] + 1}"
        if not place.startswith(str(upgraded)):
            others.append(f"{place}: {one['message']}")
        elif not one.get("rule", "").startswith("reportUnknown"):
            found.add(place.removeprefix(f"{upgraded}/"))
    assert others[:40] == []
    assert sorted(found) == json.loads((upgraded / "listed.json").read_text("utf-8"))
