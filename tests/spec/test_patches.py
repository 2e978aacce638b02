"""The ledger of corrections: each patch says what it expects to find, and nothing happens by accident."""

from __future__ import annotations

import copy
import shutil
import tomllib
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.patches import Patch, apply, load
from tests.support.commands import ROOT, save
from tests.support.small_schemas import draft

REVISIONS = list(Store().pins)
BASIS = {"$defs": {"a/b": {"type": "object", "required": ["x", "y"]}, "B": {"enum": [1, 2]}}}


def patch(pointer: str, **what: Any) -> Patch:
    return Patch(pointer=pointer, reason="a test", **what)


@pytest.mark.parametrize(
    ("change", "after"),
    [
        pytest.param(
            patch("/$defs/B/title", new="T"),
            {"$defs": {"a/b": {"type": "object", "required": ["x", "y"]}, "B": {"enum": [1, 2], "title": "T"}}},
            id="add",
        ),
        pytest.param(
            patch("/$defs/a~1b/type", old="object", new="array"),
            {"$defs": {"a/b": {"type": "array", "required": ["x", "y"]}, "B": {"enum": [1, 2]}}},
            id="replace",
        ),
        pytest.param(
            patch("/$defs/B/enum/1", old=2, new=None),
            {"$defs": {"a/b": {"type": "object", "required": ["x", "y"]}, "B": {"enum": [1, None]}}},
            id="replace-an-item",
        ),
        pytest.param(
            patch("/$defs/B", old={"enum": [1, 2]}),
            {"$defs": {"a/b": {"type": "object", "required": ["x", "y"]}}},
            id="remove",
        ),
        pytest.param(
            patch("/$defs/a~1b/required/0", old="x"),
            {"$defs": {"a/b": {"type": "object", "required": ["y"]}, "B": {"enum": [1, 2]}}},
            id="remove-an-item",
        ),
    ],
)
def test_apply(change: Patch, after: Any) -> None:
    before = copy.deepcopy(BASIS)
    assert apply(before, (change,)) == after
    assert before == BASIS


def test_patches_apply_one_after_the_other() -> None:
    first, second = patch("/$defs/C", new={"type": "null"}), patch("/$defs/C/type", old="null", new="string")
    assert apply(BASIS, (first, second))["$defs"]["C"] == {"type": "string"}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(patch("/$defs/B/enum", old=[1], new=[1, 3]), id="old-is-different"),
        pytest.param(patch("/$defs/B/type", old="string", new="null"), id="old-is-gone"),
        pytest.param(patch("/$defs/B/enum", new=[1]), id="already-there"),
        pytest.param(patch("/$defs/Gone/title", new="T"), id="no-such-parent"),
        pytest.param(patch("/$defs/B/enum/0/title", new="T"), id="parent-is-a-number"),
        pytest.param(patch("/$defs/B/enum/2", new=3), id="past-the-end"),
        pytest.param(patch("/$defs/B/enum/last", new=3), id="no-index"),
        pytest.param(patch("/$defs/Gone"), id="nothing-to-do"),
        pytest.param(patch("", old=BASIS, new={}), id="whole-document"),
    ],
)
def test_a_patch_that_does_not_fit_changes_nothing(change: Patch) -> None:
    before = copy.deepcopy(BASIS)
    with pytest.raises(BadInput) as caught:
        apply(before, (change,))
    assert caught.value.pointer == change.pointer
    assert before == BASIS


def test_a_pointer_begins_with_a_slash() -> None:
    with pytest.raises(BadInput, match="is not a JSON Pointer"):
        apply(BASIS, (patch("$defs/B", new=1),))


def test_a_patch_that_no_longer_fits_names_ledger_and_pointer(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for name in ("semantics.toml", "docs.toml"):
        shutil.copy(ROOT / "schema" / name, tmp_path)
    store.add("2030-01-31", save(tmp_path / "upstream.json", draft()), commit="abc", status="draft")
    ledger = tmp_path / "2030-01-31" / "patches.toml"
    ledger.write_text('[[patch]]\npointer = "/$defs/Book/type"\nold = "array"\nnew = "null"\nreason = "R"\n', "utf-8")
    with pytest.raises(BadInput) as caught:
        store.effective("2030-01-31")
    assert str(caught.value).startswith(f"{ledger}#/$defs/Book/type: ")
    assert "'array'" in str(caught.value)
    assert "'object'" in str(caught.value)


# --- the file -------------------------------------------------------------------------------------------------

ENTRY = 'pointer = "/$defs/B/title"\nnew = "T"\nreason = "R"\n'


def test_no_ledger_is_an_empty_one(tmp_path: Path) -> None:
    assert load(tmp_path / "patches.toml") == ()


def test_a_ledger(tmp_path: Path) -> None:
    (tmp_path / "patches.toml").write_text(f"# Words.\n[[patch]]\n{ENTRY}", "utf-8")
    (only,) = load(tmp_path / "patches.toml")
    assert (only.pointer, only.reason) == ("/$defs/B/title", "R")
    assert apply(BASIS, (only,))["$defs"]["B"]["title"] == "T"


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
    ],
)
def test_a_bad_ledger(tmp_path: Path, text: str) -> None:
    (tmp_path / "patches.toml").write_text(text, "utf-8")
    with pytest.raises(BadInput, match=r"patches\.toml"):
        load(tmp_path / "patches.toml")


def test_a_ledger_is_utf_8(tmp_path: Path) -> None:
    (tmp_path / "patches.toml").write_bytes(b"# \xff\n")
    with pytest.raises(BadInput, match=r"patches\.toml"):
        load(tmp_path / "patches.toml")


# --- our ledgers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_committed_ledgers_apply(revision: str) -> None:
    store = Store()
    text = (ROOT / "schema" / revision / "patches.toml").read_text("utf-8")
    patches = store.ledger(revision)
    assert len(patches) == len(tomllib.loads(text).get("patch", []))
    assert all(len(patch.reason) > 40 for patch in patches)
    assert (store.effective(revision).definitions == store.structure(revision)["$defs"]) == (not patches)


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
def test_each_patch_closes_a_gap(revision: str, name: str, document: Any) -> None:
    store = Store()

    def accepts(definitions: Any) -> bool:
        schema = {"$ref": f"#/$defs/{name}", "$defs": definitions}
        return jsonschema_rs.Draft202012Validator(schema).is_valid(document)

    assert not accepts(store.structure(revision)["$defs"])
    assert accepts(dict(store.effective(revision).definitions))
