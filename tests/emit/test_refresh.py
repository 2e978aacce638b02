"""Packages are only generated again if an input changed, or if a file was edited by hand."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_bindgen.emit import Request, Target, Update, drift, refresh, targets, update
from mcp_bindgen.emit.registry import emitter
from mcp_bindgen.emit.writer import present
from mcp_bindgen.spec import BadInput
from tests.harness.commands import ROOT, save
from tests.harness.small_schemas import Schema, small

FILES = sum(path.is_file() for path in (ROOT / "generated" / "mcp_bindgen" / "v2025_11_25").iterdir())
SAME = Update(FILES, changed=False)


@pytest.fixture(autouse=True)
def renders(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of rendered packages, which grows during the test; Python keeps compiled modules."""
    seen: list[str] = []
    render = Target.render

    def noted(target: Target) -> dict[str, str]:
        seen.append(target.options.package)
        return render(target)

    monkeypatch.setattr(Target, "render", noted)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return seen


def target(folder: Path, schema: Schema | None = None, revision: str = "draft") -> Target:
    """Return a package of a small schema."""
    file = save(folder / "schema.json", schema or small())
    (only,) = targets(Request(out=folder, package="acme", schema=file, name=revision))
    return only


def test_an_unchanged_target_is_not_generated_again(tmp_path: Path, renders: list[str]) -> None:
    assert update(target(tmp_path)) == Update(FILES, changed=True)
    for _ in range(2):
        assert update(target(tmp_path)) == SAME
    assert renders == ["acme"]


def edit(folder: Path, name: str = "types.py", more: str = "x = 1\n") -> None:
    (folder / name).write_text((folder / "types.py").read_text("utf-8") + more, "utf-8")


@pytest.mark.full
@pytest.mark.parametrize(
    "change", [edit, lambda folder: edit(folder, "more.py"), lambda folder: (folder / "types.py").unlink()]
)
def test_a_package_that_was_changed_by_hand_is_generated_again(
    change: Callable[[Path], None], tmp_path: Path, renders: list[str]
) -> None:
    update(target(tmp_path))
    change(tmp_path / "acme")
    assert drift(tmp_path / "acme", target(tmp_path).render())
    renders.clear()
    assert update(target(tmp_path)) == Update(FILES, changed=True)
    assert drift(tmp_path / "acme", target(tmp_path).render()) == ""
    assert renders == ["acme", "acme"]


def test_touched_files_with_the_same_content_are_unchanged(tmp_path: Path, renders: list[str]) -> None:
    update(target(tmp_path))
    edit(tmp_path / "acme", more="")
    assert update(target(tmp_path)) == SAME
    assert renders == ["acme"]


@pytest.mark.full
def test_a_changed_schema_description_or_revision_name_is_generated(tmp_path: Path, renders: list[str]) -> None:
    result = {"type": "object", "properties": {"pages": {"type": "integer"}}}
    for schema in (small(), small(FindBookResult=result), small(FindBookResult={**result, "description": "Words."})):
        assert update(target(tmp_path, schema)) == Update(FILES, changed=True)
    assert update(target(tmp_path, small(), "other")) == Update(FILES, changed=True)
    assert renders == ["acme"] * 4


def test_a_changed_generator_renders_again(tmp_path: Path, renders: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    update(target(tmp_path))
    monkeypatch.setattr("mcp_bindgen.emit.refresh._generator", lambda emitter: "another one")
    assert update(target(tmp_path)) == SAME
    assert renders == ["acme", "acme"]


def test_the_digest_of_the_generator_covers_its_code_and_its_templates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_bindgen.emit.refresh._sources", lambda emitter: [tmp_path])
    digest_of_generator = refresh._generator  # noqa: SLF001 - a generator that changes cannot be run here
    seen: set[str] = set()
    for entry in ("a.py 1", "a.py 2", "b/a.py.jinja 1", "b/a.py.jinja 2", "b/c.jinja2 1", "c.pyc 1"):
        name, text = entry.split()
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
        digest_of_generator.cache_clear()
        seen.add(digest_of_generator(emitter()))
    digest_of_generator.cache_clear()
    assert len(seen) == 5


def test_the_generator_sources_include_its_modules_and_templates() -> None:
    sources = refresh._sources(emitter())  # noqa: SLF001 - the same
    names = {path.name for root in sources for path in root.rglob("*") if path.is_file()}
    assert {"naming.py", "store.py", "types.py.jinja", "BaseModel.jinja2", "abi.py", "model.py"} <= names


@pytest.mark.full
@pytest.mark.parametrize("record", ["", "null", "[", '["x", "y"]', "\xff"])
def test_a_damaged_record_only_causes_another_rendering(record: str, tmp_path: Path, renders: list[str]) -> None:
    update(target(tmp_path))
    (tmp_path / "acme" / "__pycache__" / "mcp-bindgen.json").write_text(record, "latin-1")
    assert update(target(tmp_path)) == SAME
    assert renders == ["acme", "acme"]


def test_a_record_does_not_allow_foreign_files(tmp_path: Path) -> None:
    update(target(tmp_path))
    (tmp_path / "acme" / "notes.txt").write_text("mine", "utf-8")
    with pytest.raises(BadInput, match=r"notes\.txt"):
        update(target(tmp_path))


def test_a_record_is_written_even_if_python_writes_no_bytecode(
    tmp_path: Path, renders: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for _ in range(2):
        update(target(tmp_path))
    assert renders == ["acme"]
    assert [path.name for path in (tmp_path / "acme" / "__pycache__").iterdir()] == ["mcp-bindgen.json"]


def test_check_does_not_trust_a_record(tmp_path: Path) -> None:
    """An attacker may edit a file and the record so that they agree."""
    update(target(tmp_path))
    edit(tmp_path / "acme")
    path = tmp_path / "acme" / "__pycache__" / "mcp-bindgen.json"
    made_of, _ = json.loads(path.read_text("utf-8"))
    digest = refresh._digest(present(tmp_path / "acme"))  # noqa: SLF001 - an attacker may know the code
    path.write_text(json.dumps([made_of, digest]), "utf-8")
    assert update(target(tmp_path)) == SAME
    assert "x = 1" in drift(tmp_path / "acme", target(tmp_path).render())
