"""The wheel, the source distribution and the workflows; `make dist` installs each extra, too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.harness.commands import ROOT, SOURCE_ROOTS, execute
from tests.harness.distribution import (
    check_contents,
    check_metadata,
    check_release,
    check_types,
    project,
    typed_packages,
)
from tests.harness.installation import installed, wheel

DATED = "# Changelog\n\n## [0.1.0] - 2026-11-24\n"


@pytest.mark.full
def test_a_wheel_from_the_source_distribution_has_every_file_and_all_metadata(tmp_path: Path) -> None:
    done = execute(sys.executable, "-m", "build", "--sdist", "--outdir", tmp_path, ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,) = tmp_path.glob("*.tar.gz")
    built = wheel(tmp_path / "wheel", sdist)
    check_metadata(built)
    check_contents(built, sdist)


@pytest.mark.full
def test_the_types_of_the_largest_packages_are_complete(tmp_path: Path, own_wheel: Path) -> None:
    """Check two packages: pyright takes five seconds for each. `make dist` checks all, for every change in CI."""
    check_types(installed(tmp_path, own_wheel).python, ["mcp_bindgen.runtime", "mcp_bindgen.app"])


def test_public_packages_are_the_packages_with_a_py_typed_marker() -> None:
    marked = {
        path.parent.relative_to(ROOT / root).parts for root in SOURCE_ROOTS for path in (ROOT / root).rglob("py.typed")
    }
    used = {
        "mcp_bindgen.bridges",
        "mcp_bindgen.contract",
        "mcp_bindgen.extension_abi",
    }  # public packages expose their types
    assert set(typed_packages()) == {".".join(parts) for parts in marked} - used


def test_python_versions_agree() -> None:
    stated = project()
    classified = [name.rpartition(" ")[2] for name in stated["classifiers"] if "Python :: 3." in name]
    tried = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    assert stated["requires-python"] == f">={classified[0]}"
    assert [version for version in classified if f'"{version}"' not in tried] == []


@pytest.mark.full
def test_workflows_pass_zizmor() -> None:
    done = execute(
        Path(sys.executable).with_name("zizmor"), "--offline", "--persona", "auditor", ".github", "action.yml", cwd=ROOT
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("tag", "repository", "changelog", "fault"),
    [
        ("v9.9.9", "", DATED, "the tag is v9.9.9"),
        ("", "https://example.com/fork", DATED, "is not the repository"),
        ("", "", "# Changelog\n\n## Unreleased\n", "no dated heading"),
    ],
)
def test_a_release_needs_its_tag_repository_and_date(tag: str, repository: str, changelog: str, fault: str) -> None:
    stated = project()
    right = (f"v{stated['version']}", stated["urls"]["Repository"])
    check_release(*right, DATED.replace("0.1.0", stated["version"]))
    with pytest.raises(AssertionError, match=fault):
        check_release(tag or right[0], repository or right[1], changelog.replace("0.1.0", stated["version"]))
