"""`upgrade` on real skeletons: the owner's lines stay, tests pass, and it lists the lines that pyright reports."""

from __future__ import annotations

import json
import re
import shutil
from itertools import pairwise, permutations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_bindgen.contract.code.regeneration import generate_contract
from mcp_bindgen.emit.header import is_generated
from mcp_bindgen.emit.python import naming
from mcp_bindgen.spec import BadInput, Store
from tests.harness.commands import execute, inside, save, snapshot
from tests.harness.effort import examples
from tests.harness.forks import PYTHON
from tests.harness.marks import unmarked
from tests.harness.small_schemas import record

REVISIONS = list(Store().pins)
OLD, NEW = "2025-11-25", "2026-07-28"
NEIGHBOURS = [*pairwise(REVISIONS), *pairwise(REVISIONS[::-1])]
FAR = [pair for pair in permutations(REVISIONS, 2) if pair not in NEIGHBOURS]

CONTRACT = {
    "serverInfo": {"name": "weather", "version": "1"},
    "tools": [
        {"name": "get-forecast", "description": "Tells.", "inputSchema": record("city", city={"type": "string"})}
    ],
    "prompts": [{"name": "greeting", "arguments": [{"name": "who", "required": True}]}],
    "resources": [{"uri": "file:///readme", "name": "readme"}],
}


def scaffold(kind: str, folder: Path, *options: object) -> Path:
    """Scaffold a project; return its folder."""
    inside("scaffold", kind, folder.name, "--out", folder.parent, *options, code=0)
    return folder


def contracted(folder: Path, kind: str = "server", *options: object) -> Path:
    """Scaffold a project with a contract; return its folder."""
    file = folder.with_suffix(".json")
    file.write_text(json.dumps(CONTRACT), "utf-8")
    return scaffold(kind, folder, "--contract", file, *options)


def modules(folder: Path) -> list[str]:
    """Return the dotted names of a project's modules."""
    paths = [path.relative_to(folder / "src").with_suffix("") for path in sorted((folder / "src").rglob("*.py"))]
    return [".".join(path.parts).removesuffix(".__init__") for path in paths]


def passes_its_tests(folder: Path) -> bool:
    """Return True if the tests of a project pass."""
    done = execute(PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=folder)
    assert done.returncode in (0, 1, 2), done.stdout + done.stderr
    return done.returncode == 0


def listed(said: str, folder: Path) -> set[str]:
    """Return the lines that have to change for certain, according to the output of an upgrade."""
    found: set[str] = set()
    file = ""
    for line in said.splitlines():
        if line.startswith(f"{folder}/"):
            file = line.partition(" ")[0].removeprefix(f"{folder}/")
        if (place := re.match(r"  (\d+):\d+ +(?!perhaps)", line)) is not None:
            found.add(f"{file}:{place[1]}")
    return found


def check(folder: Path, new: str) -> None:
    """Upgrade a project, which must stay importable; its tests pass unless the upgrade lists work to do."""
    done = inside("upgrade", folder, "--to", new)
    assert (done.returncode in (0, 1), done.stderr) == (True, ""), done.stderr
    assert "left  " not in done.stdout
    imported = execute(
        PYTHON, "-W", "error", "-c", f"import {', '.join(modules(folder))}", PYTHONPATH=str(folder / "src")
    )
    assert imported.returncode == 0, imported.stderr
    if done.returncode == 0:
        assert passes_its_tests(folder)


@pytest.mark.full
@pytest.mark.parametrize(("old", "new"), [pair for pair in NEIGHBOURS if "2025-06-18" <= pair[0] < pair[1]])
def test_a_server_can_be_upgraded_to_the_next_revision(old: str, new: str, tmp_path: Path) -> None:
    check(scaffold("server", tmp_path / "weather", "--revision", old), new)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["server", "client"])
@pytest.mark.parametrize(("old", "new"), [*NEIGHBOURS, *FAR])
def test_skeletons_can_be_upgraded_to_any_other_revision(kind: str, old: str, new: str, tmp_path: Path) -> None:
    check(scaffold(kind, tmp_path / "plain", "--revision", old), new)
    check(contracted(tmp_path / "promised", kind, "--revision", old), new)


@pytest.mark.full
@pytest.mark.parametrize(("kind", "revisions"), [("server", ["2024-11-05", OLD, NEW]), ("client", [OLD, NEW])])
def test_a_project_with_a_contract_can_be_upgraded_repeatedly(kind: str, revisions: list[str], tmp_path: Path) -> None:
    """Each upgrade writes the generated files, also if they are missing."""
    first, *others = revisions
    folder = contracted(tmp_path / "weather", kind, "--revision", first)
    for new in others:
        check(folder, new)
        contract = folder / "src" / "weather" / "contract"
        assert naming.package(new).encode() in b"".join(snapshot(contract).values())
        shutil.rmtree(contract)


def write_upgraded(folder: Path) -> None:
    """Upgrade projects, and save the lines that have to change; `test_types.py` compares them with pyright."""
    lines: list[str] = []
    for old, new in ((OLD, NEW), (NEW, "2025-06-18")):
        name = f"from-{old}"
        project = scaffold("server", folder / name, "--revision", old, "--with", "tools,resources,prompts,logging")
        done = inside("upgrade", project, "--to", new)
        found = listed(done.stdout, project)
        assert done.returncode == (1 if found else 0)
        lines += [f"{name}/{line}" for line in found]
    save(folder / "listed.json", sorted(lines))


@pytest.mark.full
def test_edited_generated_files_are_left_or_moved_aside(tmp_path: Path) -> None:
    folder = contracted(tmp_path / "weather", "server", "--revision", OLD)
    base = folder / "src/weather/contract/base.py"
    base.write_text(edited := base.read_text("utf-8") + "# mine\n", "utf-8")
    done = inside("upgrade", folder, "--to", NEW, code=1)
    assert f"generated  {base}: was edited, and was left" in done.stdout
    assert base.read_text("utf-8") == edited
    done = inside("upgrade", folder, "--replace", OLD, "--to", NEW, "--force", code=0)
    assert naming.package(NEW) in base.read_text("utf-8")
    assert (base.parent / "base.py.edited").read_text("utf-8") == edited
    assert passes_its_tests(folder)


# --- files of the owner -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an unedited project."""
    return contracted(tmp_path_factory.mktemp("origin") / "weather", "server", "--revision", OLD)


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
IMPORTS = ["import mcp_bindgen.v2025_11_25.types as more_types", "    from mcp_bindgen import v2025_11_25 as inner"]
ODD = ["MINE = 'ä \u2028 \x0c'", "\tdef odd(", ")]} '''", "    pass", "", "raise RuntimeError('not yet')"]
LINES = st.sampled_from([*IMPORTS, *ODD, "# a comment of mine: v2025_11_25, 2025-11-25", "text: 2025-11-25"])


def edit(path: Path, data: st.DataObject) -> None:
    """Insert, delete and change some lines of a file, with line ends of any kind."""
    lines = path.read_bytes().split(b"\n")
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(lines)))
        taken = data.draw(st.sampled_from([0, 0, 1, 3]))
        given = data.draw(st.lists(LINES, max_size=2))
        end = data.draw(st.sampled_from(["", "\r"]))
        lines[at : at + taken] = [f"{line}{end}".encode() for line in given]
    path.write_bytes(b"\n".join(lines))


def owned(folder: Path) -> dict[str, bytes]:
    """Return the files that the owner of a project writes."""
    mine = {name: content for name, content in snapshot(folder).items() if not is_generated(content)}
    return {name: content for name, content in mine.items() if not name.endswith("contract/contract.json")}


def same_lines(before: bytes, after: bytes) -> bool:
    """Return True if two files differ at most in names of the old revision, and in marks at lines that are left."""
    after = unmarked(after.decode("latin-1")).encode("latin-1")
    for old, new in ((OLD, NEW), (naming.package(OLD), naming.package(NEW))):
        parts = map(re.escape, before.split(old.encode()))
        if re.fullmatch(f"(?:{old}|{new})".encode().join(parts), after):
            return True
    return False


def survives(origin: Path, folder: Path, data: st.DataObject) -> None:
    """Check that every line of the owner survives edit, regenerate, edit, upgrade."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(origin, folder)
    for step in ("generate", "upgrade"):
        for name in data.draw(st.lists(st.sampled_from(sorted(owned(folder))), max_size=4, unique=True)):
            edit(folder / name, data)
        before, whole = owned(folder), snapshot(folder)
        try:
            if step == "generate":
                generate_contract(folder)
                assert owned(folder) == before
                continue
        except BadInput:  # the edits hit the contract or the project's metadata
            assert snapshot(folder) == whole
            continue
        done = inside("upgrade", folder, "--to", NEW)
        if done.returncode == 2:
            assert snapshot(folder) == whole
        after = owned(folder)
        assert after.keys() == before.keys()
        assert [name for name in before if not same_lines(before[name], after[name])] == []


@pytest.mark.full
@settings(max_examples=examples(3, 8), deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_every_line_of_the_owner_is_kept(origin: Path, data: st.DataObject) -> None:
    survives(origin, origin.parent / "edited", data)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_every_line_of_the_owner_is_kept_in_many_examples(origin: Path, data: st.DataObject) -> None:
    survives(origin, origin.parent / "edited", data)
