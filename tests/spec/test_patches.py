"""The known errata: each patch states the value that it replaces, and no other value is changed."""

from __future__ import annotations

import copy
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from mcp_bindgen.ir.status import reports_of
from mcp_bindgen.spec import BadInput, Store, Upstream
from mcp_bindgen.spec.patches import Patch, apply, load
from tests.harness.commands import ROOT, inside, save
from tests.harness.small_schemas import draft

REVISIONS = list(Store().pins)
BASIS: Any = {"$defs": {"a/b": {"type": "object", "required": ["x", "y"]}, "B": {"enum": [1, 2]}}}


def patch(pointer: str, **what: Any) -> Patch:
    return Patch(pointer=pointer, reason="a test", **what)


OBJECT, ENUM = BASIS["$defs"].values()


def test_a_patch_adds_replaces_or_removes_a_value() -> None:
    for change, after in [
        (patch("/$defs/B/title", new="T"), {"a/b": OBJECT, "B": {**ENUM, "title": "T"}}),
        (patch("/$defs/a~1b/type", old="object", new="array"), {"a/b": {**OBJECT, "type": "array"}, "B": ENUM}),
        (patch("/$defs/B/enum/1", old=2, new=None), {"a/b": OBJECT, "B": {"enum": [1, None]}}),
        (patch("/$defs/B", old=ENUM), {"a/b": OBJECT}),
        (patch("/$defs/a~1b/required/0", old="x"), {"a/b": {**OBJECT, "required": ["y"]}, "B": ENUM}),
    ]:
        before = copy.deepcopy(BASIS)
        assert apply(before, (change,)) == ({"$defs": after}, (change,))
        assert before == BASIS


def test_patches_apply_one_after_the_other() -> None:
    first, second = patch("/$defs/C", new={"type": "null"}), patch("/$defs/C/type", old="null", new="string")
    patched, applied = apply(BASIS, (first, second))
    assert patched["$defs"]["C"] == {"type": "string"}
    assert applied == (first, second)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(patch("/$defs/B/enum", old=[1], new=[1, 3]), id="old-is-different"),
        pytest.param(patch("/$defs/B/enum/0", old=1 == 1, new=3), id="old-is-true-and-not-1"),
        pytest.param(patch("/$defs/B/type", old="string", new="null"), id="old-is-gone"),
        pytest.param(patch("/$defs/B/enum", new=[1]), id="already-there"),
        pytest.param(patch("/$defs/Gone/title", new="T"), id="no-such-parent"),
        pytest.param(patch("/$defs/B/enum/0/title", new="T"), id="parent-is-a-number"),
        pytest.param(patch("/$defs/B/enum/2", new=3), id="past-the-end"),
        pytest.param(patch("/$defs/B/enum/last", new=3), id="no-index"),
    ],
)
def test_a_patch_that_does_not_match_is_an_error_only_in_its_listed_revisions(change: Patch) -> None:
    before = copy.deepcopy(BASIS)
    expected = replace(change, revisions=("2030-01-31",))
    for revision in (None, "2031-01-31"):
        assert apply(before, (expected,), revision) == (BASIS, ())
    with pytest.raises(BadInput, match="in 2030-01-31; review") as caught:
        apply(before, (expected,), "2030-01-31")
    assert caught.value.pointer == change.pointer
    assert before == BASIS


def test_a_patch_ignores_descriptions_and_order_and_keeps_descriptions() -> None:
    told = {"description": "A book.", "required": ["y", "x"], "title": "Book", "type": "object"}
    change = patch("/$defs/a~1b", old=BASIS["$defs"]["a/b"], new={"type": "string"})
    patched, applied = apply({"$defs": {"a/b": told}}, (change,))
    assert applied == (change,)
    assert patched["$defs"]["a/b"] == {"description": "A book.", "title": "Book", "type": "string"}
    items = patch("/$defs/a~1b/required", old=["x", "y"], new=["x"])
    assert apply({"$defs": {"a/b": told}}, (items,))[0]["$defs"]["a/b"]["required"] == ["x"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a folder with one revision without mistakes."""
    made = Store(tmp_path)
    for name in ("semantics.toml", "docs.toml"):
        shutil.copy(ROOT / "schema" / name, tmp_path)
    made.add("2030-01-31", Upstream(save(tmp_path / "upstream.json", draft()), "abc", status="draft"))
    return made


def errata(store: Store, old: str, revisions: str = "[]") -> Path:
    """Write a patch that expects this type of a film's `minutes`; return the path of the errata."""
    path, place = store.root / "patches.toml", "/$defs/Film/properties/minutes/type"
    entry = f'pointer = "{place}"\nold = "{old}"\nnew = "integer"\nreason = "R"\nrevisions = {revisions}\n'
    path.write_text(f"[[patch]]\n{entry}", "utf-8")
    return path


def test_the_error_for_a_patch_that_does_not_match_names_file_pointer_and_revision(store: Store) -> None:
    path = errata(store, "string", '["2030-01-31"]')
    with pytest.raises(BadInput) as caught:
        store.effective("2030-01-31")
    assert str(caught.value).startswith(f"{path}#/$defs/Film/properties/minutes/type: ")
    assert "expects 'string' but finds 'number' in 2030-01-31" in str(caught.value)


def test_a_patch_applies_to_an_unlisted_revision_and_status_requires_listing_it(store: Store) -> None:
    errata(store, "number")
    assert store.effective("2030-01-31").definitions["Film"]["properties"]["minutes"]["type"] == "integer"
    (report,) = reports_of(store)
    assert (report.patches, report.unlisted, report.sound) == (1, ("/$defs/Film/properties/minutes/type",), False)
    done = inside("schema", "status", "--folder", store.root, code=1)
    fix = "list it in patches.toml among the revisions of /$defs/Film/properties/minutes/type"
    assert done.stderr == f"2030-01-31: {fix}\n"
    errata(store, "number", '["2030-01-31"]')
    (report,) = reports_of(Store(store.root))
    assert (report.patches, report.unlisted) == (1, ())


# --- the file -------------------------------------------------------------------------------------------------

ENTRY = 'pointer = "/$defs/B/title"\nnew = "T"\nreason = "R"\n'


def test_a_missing_patch_file_contains_no_patches(tmp_path: Path) -> None:
    assert load(tmp_path / "patches.toml") == ()


def test_a_patch_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "patches.toml").write_text(f"# Words.\n[[patch]]\n{ENTRY}", "utf-8")
    (only,) = load(tmp_path / "patches.toml")
    assert (only.pointer, only.reason) == ("/$defs/B/title", "R")
    assert apply(BASIS, (only,))[0]["$defs"]["B"]["title"] == "T"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[[patch]", id="bad-toml"),
        pytest.param(f"[[patch]]\n{ENTRY}nwe = 1\n", id="unknown-key"),
        pytest.param(f"[[patches]]\n{ENTRY}", id="unknown-table"),
        pytest.param(f"[patch]\n{ENTRY}", id="one-table"),
        pytest.param("patch = 3", id="no-list"),
        pytest.param(f"[[patch]]\n{ENTRY}".replace("reason", "# reason"), id="no-reason"),
        pytest.param(f"[[patch]]\n{ENTRY}".replace("pointer", "# pointer"), id="no-pointer"),
        pytest.param(f"[[patch]]\n{ENTRY}".replace('"/$defs/B/title"', "3"), id="pointer-is-a-number"),
        pytest.param(f"[[patch]]\n{ENTRY}".replace("/$defs", "$defs"), id="pointer-without-a-slash"),
        pytest.param(f"[[patch]]\n{ENTRY}".replace("/$defs/B/title", ""), id="whole-document"),
        pytest.param(f"[[patch]]\n{ENTRY}".replace("new", "# new"), id="nothing-to-do"),
        pytest.param(f'[[patch]]\n{ENTRY}revisions = "2025-11-25"\n', id="one-revision"),
    ],
)
def test_an_invalid_patch_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "patches.toml").write_text(text, "utf-8")
    with pytest.raises(BadInput, match=r"patches\.toml"):
        load(tmp_path / "patches.toml")


def test_a_patch_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "patches.toml").write_bytes(b"# \xff\n")
    with pytest.raises(BadInput, match=r"patches\.toml"):
        load(tmp_path / "patches.toml")


# --- our errata -----------------------------------------------------------------------------------------------


def test_each_patch_lists_exactly_the_revisions_that_it_corrects() -> None:
    store = Store()
    applied = {revision: store.effective(revision).applied for revision in REVISIONS}
    for entry in store.errata:
        assert entry.revisions == tuple(revision for revision in REVISIONS if entry in applied[revision])
        assert entry.revisions
        assert len(entry.reason) > 40
    assert len({(entry.pointer, str(entry.old)) for entry in store.errata}) == len(store.errata)


@pytest.mark.parametrize(
    ("revision", "name", "document"),
    [
        ("2025-06-18", "ElicitResult", {"action": "accept", "content": {"height": 1.5}}),
        ("2025-11-25", "ElicitResult", {"action": "accept", "content": {"height": 1.5}}),
        ("2026-07-28", "ElicitResult", {"action": "accept", "content": {"height": 1.5}}),
        ("2026-07-28", "JSONValue", 1.5),
        ("2026-07-28", "JSONValue", None),
        ("2026-07-28", "JSONValue", {"deep": [1.5, None]}),
    ],
)
def test_patched_schemas_accept_valid_documents_that_upstream_rejects(revision: str, name: str, document: Any) -> None:
    store = Store()

    def accepts(definitions: Any) -> bool:
        schema = {"$ref": f"#/$defs/{name}", "$defs": definitions}
        return jsonschema_rs.Draft202012Validator(schema).is_valid(document)

    assert not accepts(store.structure(revision)["$defs"])
    assert accepts(dict(store.effective(revision).definitions))
