"""Schema files: mistakes are reported in one line, and valid files have one canonical form."""

from __future__ import annotations

import copy
import json
import random
import shutil
import tomllib
from contextlib import suppress
from datetime import date
from functools import reduce
from itertools import product
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen.ir import build
from mcp_bindgen.spec import BadInput, DiagnosticContext, Store, Upstream, external
from mcp_bindgen.spec.canonical import canonical, digest, dumps
from mcp_bindgen.spec.document import normalise, read
from mcp_bindgen.spec.json import is_json_type, json_type_of, parse
from mcp_bindgen.spec.toml import quoted
from tests.harness.commands import ROOT, UPSTREAM, save, shuffled, snapshot
from tests.harness.small_schemas import Schema, draft, record, ref, small, union

REVISIONS = list(Store().pins)
TEXT = {"type": "string"}


def check(error: BadInput, file: Path, pointer: str | None = None) -> None:
    """Check for one line that names the file, the place in it and a fix."""
    place = f"{file}#{pointer}: " if pointer is not None else f"{file}: "
    assert str(error).startswith(place)
    assert "\n" not in str(error)
    assert error.fix
    assert str(error).endswith(f"; {error.fix}")


# --- bad files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not JSON"),
        (b'{"$defs": ', "line 1 column 11"),
        (b'{"$defs": {"X": {"default": NaN}}}', "NaN"),
        (b'{"$defs": {"X": {"default": -Infinity}}}', "-Infinity"),
        (b'{"$defs": {"X": {}, "Y": {}, "X": {}}}', "'X' is repeated"),
        ('{"$defs": {"É": {}}}'.encode("latin-1"), "UTF-8"),
        ('{"$defs": {"X": {}}}'.encode("utf-16"), "UTF-8"),
        (b"[]", "not an object"),
        (b"null", "not an object"),
        *[(content, "$defs") for content in (b'{"type": "object"}', b'{"$defs": {}}', b'{"$defs": []}')],
        pytest.param(b'{"$defs":' * 100_000, "deep", id="very-deep"),
    ],
)
def test_a_file_that_is_not_a_schema_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "schema.json"
    file.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        read(file)
    check(caught.value, file, caught.value.pointer)
    assert says in str(caught.value)


def test_a_repeated_member_is_named_with_its_place() -> None:
    with pytest.raises(BadInput, match="the member 'a/b' is repeated") as caught:
        parse('{"x": [1, {"y": 1, "a/b": {"z": 1, "z": 2}, "a/b": 2}]}', "schema", "fix")
    assert caught.value.pointer == "/x/1/a~1b"


def test_a_missing_file_or_a_folder_is_refused(tmp_path: Path) -> None:
    for path, says in ((tmp_path / "schema.json", "No such file"), (tmp_path, "directory")):
        with pytest.raises(BadInput, match=says) as caught:
            read(path)
        check(caught.value, path)


def test_a_reference_cycle_is_refused(tmp_path: Path) -> None:
    for keyword in ["anyOf", "oneOf", "allOf"]:
        file = save(tmp_path / "schema.json", {"$defs": {"A": {keyword: [TEXT, ref("B")]}, "B": ref("A")}})
        with pytest.raises(BadInput, match="A -> B -> A") as caught:
            read(file)
        check(caught.value, file, "/$defs/A")


def test_many_reference_cycles_are_all_broken() -> None:
    names = [f"A{number}" for number in range(60)]
    document = {"$defs": {name: {"anyOf": [ref(other) for other in names]} for name in names}}
    context = DiagnosticContext(strict=False)
    grounded = normalise(document, context)
    assert len(context.diagnostics) == 60 * 61 // 2
    assert max(len(diagnostic.reason) for diagnostic in context.diagnostics) < 100
    assert normalise(grounded) == grounded


def test_recursion_below_an_object_or_array_is_fine() -> None:
    for below in [record(a=ref("A")), {"type": "array", "items": ref("A")}, {"additionalProperties": union("A", "B")}]:
        assert normalise({"$defs": {"A": below, "B": TEXT}})["$defs"]["A"] == below


CHANGES_THE_MEANING: list[Schema] = [
    {"patternProperties": {"^x": {}}, "not": {"type": "string"}, "if": {}, "prefixItems": [{}], "uniqueItems": True},
    {"minProperties": 1, "propertyNames": {"maxLength": 3}, "unevaluatedProperties": False, "dependentRequired": {}},
    {"$dynamicRef": "#x", "$id": "https://example.org", "nullable": True, "requried": []},
]


def test_an_unsupported_keyword_is_refused(tmp_path: Path) -> None:
    for keyword, value in [item for row in CHANGES_THE_MEANING for item in row.items()]:
        file = save(tmp_path / "schema.json", {"$defs": {"X": record(**{"a/b": {keyword: value}})}})
        with pytest.raises(BadInput, match=f"'{keyword}'".replace("$", r"\$")) as caught:
            read(file)
        check(caught.value, file, f"/$defs/X/properties/a~1b/{keyword}")


WRONG_KIND: list[Schema] = [
    {"/$ref": 3, "/type": 3, "/enum": "a", "/properties": [], "/required": "a", "/additionalProperties": "no"},
    {"/type": [], "/enum": [], "/properties/a": {"a": 5}, "/required": [5], "/items": [{}], "/anyOf": {}},
    {"/type": [{}], "/anyOf": [], "/anyOf/0": [5], "/allOf": [], "/minimum": "3", "/exclusiveMinimum": True},
    {"/minLength": 1.5, "/pattern": 5, "/format": 5, "/description": 5},
]
"""Reported place -> the wrong value of the keyword there."""


def test_a_keyword_with_a_value_of_the_wrong_type_is_refused(tmp_path: Path) -> None:
    for pointer, value in [item for row in WRONG_KIND for item in row.items()]:
        file = save(tmp_path / "schema.json", {"$defs": {"X": {pointer.split("/")[1]: value}}})
        with pytest.raises(BadInput) as caught:
            read(file)
        check(caught.value, file, f"/$defs/X{pointer}")


def test_a_constraint_beside_a_reference_is_refused() -> None:
    for beside in [record(a=TEXT), {"minLength": 3}, {"const": "a"}, {"format": "uri"}]:
        with pytest.raises(BadInput, match=r"beside '\$ref'"):
            normalise({"$defs": {"X": {**ref("Y"), **beside}, "Y": {}}})


def test_unusual_schema_files_never_crash_the_reader(tmp_path: Path) -> None:
    for document in [
        '{"$defs": {"X": ' + '{"items": ' * 700 + "{}" + "}" * 702,
        json.dumps({"$defs": {**{f"A{n}": ref(f"A{n + 1}") for n in range(3000)}, "A3000": TEXT}}),
        '{"$defs": {"X": {"enum": [{"a": 1}, {"b": 1}]}}}',
        '{"$defs": {"X": {"enum": ["\\ud800"]}}}',
    ]:
        file = tmp_path / "schema.json"
        file.write_text(document, "utf-8")
        with suppress(BadInput):
            external(file, "draft", {})


# --- good files -----------------------------------------------------------------------------------------------


def test_prose_and_extension_keywords_are_accepted_everywhere() -> None:
    prose = {"title": "T", "description": "D", "$comment": "C"}
    extra = {**prose, "x-note": {"not": 1}, "examples": [1], "deprecated": True}
    document = {"$defs": {"X": {**record(a={**TEXT, **extra}), **extra}}}
    assert normalise(document)["$defs"] == document["$defs"]


def test_members_may_be_named_like_keywords() -> None:
    for key in ["$defs", "definitions"]:
        names = ["$ref", "not", "if", "type", "required", "description", "title", "$comment", "properties"]
        document = normalise({key: {"X": record("$ref title", **dict.fromkeys(names, TEXT))}})
        assert canonical(document)["$defs"]["X"]["properties"] == dict.fromkeys(sorted(names), TEXT)


def as_draft_07(node: Any) -> Any:
    return json.loads(json.dumps(node).replace("#/$defs/", "#/definitions/").replace('"$defs"', '"definitions"'))


def test_both_dialects_have_one_canonical_form(tmp_path: Path) -> None:
    new = read(save(tmp_path / "new.json", draft()))[0]
    old = read(save(tmp_path / "old.json", as_draft_07(draft())))[0]
    assert canonical(old) == canonical(new)
    assert digest(old) == digest(new)


def test_draft_07_ignores_constraints_beside_a_reference() -> None:
    beside = {"description": "kept", "type": "object", "minLength": 3, "properties": {"a": TEXT}}
    document = normalise({"definitions": {"X": {"$ref": "#/definitions/Y", **beside}, "Y": TEXT}})
    assert document["$defs"]["X"] == {"$ref": "#/$defs/Y", "description": "kept"}


# --- the canonical form ---------------------------------------------------------------------------------------

SAMPLE: Schema = {
    "Y": TEXT,
    "X": {
        "title": "X",
        "description": "Prose.",
        "required": ["b", "a"],
        "type": "object",
        "properties": {
            "b": {"enum": ["z", 1, "a", None, True], "examples": ["z"]},
            "a": {"anyOf": [ref("Y"), {"type": "integer", "minimum": 0, "$comment": "Prose."}]},
            "description": {"description": "A member.", "default": {"p": [2, 1], "q": 1}, "type": "object"},
            "title": {"markdownDescription": "Prose.", "type": "boolean"},
        },
    },
}


def test_written_json_is_indented_and_keeps_non_ascii_text() -> None:
    assert dumps({"names": ["Zoë"]}) == '{\n  "names": [\n    "Zoë"\n  ]\n}\n'


def test_the_canonical_form_has_no_descriptions_and_one_order() -> None:
    expected = {
        "X": {
            "type": "object",
            "properties": {
                "a": {"anyOf": [ref("Y"), {"type": "integer", "minimum": 0}]},
                "b": {"enum": [None, True, 1, "a", "z"]},
                "description": {"type": "object", "default": {"p": [2, 1], "q": 1}},
                "title": {"type": "boolean"},
            },
            "required": ["a", "b"],
        },
        "Y": TEXT,
    }
    assert dumps(canonical(normalise({"$defs": SAMPLE}))["$defs"]) == dumps(expected)


def test_canonical_is_idempotent() -> None:
    for definitions in [SAMPLE, draft()["$defs"]]:
        once = canonical(normalise({"$defs": definitions}))
        assert dumps(canonical(once)) == dumps(once)
        assert digest(once) == digest(normalise({"$defs": definitions}))


def test_the_order_of_members_does_not_change_the_digest() -> None:
    for definitions, seed in product([SAMPLE, draft()["$defs"]], range(5)):
        other = shuffled(definitions, seed)
        for node in other.values():
            random.Random(seed).shuffle(node.get("required", []))
        assert digest(normalise({"$defs": other})) == digest(normalise({"$defs": definitions}))


def test_an_empty_required_list_has_the_digest_of_a_missing_list() -> None:
    assert digest(normalise(small(X={"required": []}))) == digest(normalise(small(X={})))


def test_a_structural_change_changes_the_digest() -> None:
    changes: list[tuple[str, Any]] = [
        *(("additionalProperties", False), ("required", ["b"]), ("properties/title/type", "string")),
        *(("properties/title", True), ("properties/new", TEXT), ("properties/b/enum", ["z", 1, "a", None])),
        ("properties/a/anyOf", [{"type": "integer", "minimum": 0}, ref("Y")]),
        *(("properties/a/minLength", 1), ("properties/description/default/q", 2)),
    ]
    for place, value in changes:
        *parents, last = place.split("/")
        changed = copy.deepcopy(SAMPLE)
        reduce(getitem, parents, changed["X"])[last] = value
        assert digest(normalise({"$defs": changed})) != digest(normalise({"$defs": SAMPLE}))


# --- the schema folder ----------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a folder with one revision, made from `upstream.json` beside it."""
    (tmp_path / "schema").mkdir()
    for name in ("semantics.toml", "docs.toml"):
        shutil.copy(ROOT / "schema" / name, tmp_path / "schema")
    made = Store(tmp_path / "schema")
    made.add("2030-01-31", Upstream(save(tmp_path / "upstream.json", draft()), "abc", status="draft"))
    return made


def test_an_imported_revision_passes_verification(store: Store, tmp_path: Path) -> None:
    assert store.verify("2030-01-31", tmp_path / "upstream.json") == (True, [])
    assert store.is_pinned("2030-01-31")
    pin = store.pin("2030-01-31")
    assert (pin.era, pin.status, pin.date, pin.source) == ("stateless", "draft", "2030-01-31", "abc")


def test_an_imported_revision_builds_the_same_protocol_as_its_file(store: Store, tmp_path: Path) -> None:
    ours = build(store.effective("2030-01-31"))
    theirs = build(external(tmp_path / "upstream.json", "2030-01-31", store.semantics))
    assert ours.digest == theirs.digest
    assert list(ours.definitions) == list(theirs.definitions)
    assert [method.name for method in ours.methods] == [method.name for method in theirs.methods]


def test_the_committed_file_has_no_descriptions(store: Store) -> None:
    text = (store.root / "2030-01-31" / "schema.json").read_text("utf-8")
    assert "What stands on the cover." in json.dumps(draft())
    assert "description" not in text


def test_a_file_with_other_descriptions_has_the_same_structure(store: Store, tmp_path: Path) -> None:
    other = draft()
    other["$defs"]["Item"]["description"] = "Other words."
    assert store.verify("2030-01-31", save(tmp_path / "other.json", other)) == (False, [])


def test_verify_lists_the_differences_of_the_structure(store: Store, tmp_path: Path) -> None:
    other = draft()
    other["$defs"]["New"] = TEXT
    del other["$defs"]["Anything"]
    other["$defs"]["Book"]["properties"]["pages"]["type"] = "number"
    other["$defs"]["Sealed"]["additionalProperties"] = 0 == 0
    same, lines = store.verify("2030-01-31", save(tmp_path / "other.json", other))
    assert not same
    assert lines == [
        "/$defs/Anything: gone",
        '/$defs/Book/properties/pages/type: "integer" -> "number"',
        "/$defs/Sealed/additionalProperties: false -> true",
        "/$defs/New: new",
    ]


def test_a_change_of_the_committed_file_is_noticed(store: Store) -> None:
    file = store.root / "2030-01-31" / "schema.json"
    file.write_text(file.read_text("utf-8").replace('"integer"', '"number"', 1), "utf-8")
    assert not store.is_pinned("2030-01-31")


def test_an_unknown_revision_suggests_the_nearest() -> None:
    for wrong, near in [("2025-11-52", "2025-11-25"), ("2026-7-28", "2026-07-28")]:
        with pytest.raises(BadInput, match=rf"'{wrong}'; did you mean {near}\?"):
            Store().effective(wrong)


def test_importing_keeps_comments_other_entries_and_patches(store: Store, tmp_path: Path) -> None:
    table, errata = store.root / "revisions.toml", store.root / "patches.toml"
    before = "# Reviewed by hand.\n" + table.read_text("utf-8").replace('"abc"', '"abc"  # the fix of May')
    table.write_text(before, "utf-8")
    errata.write_text("# None yet.\n", "utf-8")
    upstream = tmp_path / "upstream.json"
    store.add("2031-01-31", Upstream(upstream, "def", status="released", changed=date(2031, 2, 1)))
    assert table.read_text("utf-8").startswith(before)
    assert list(store.pins) == ["2030-01-31", "2031-01-31"]
    assert store.pin("2031-01-31").date == "2031-02-01"

    store.add("2031-01-31", Upstream(upstream, "123", status="released"))
    assert table.read_text("utf-8").startswith(before)
    assert (store.pin("2030-01-31").source, store.pin("2031-01-31").source) == ("abc", "123")

    store.add("2030-01-31", Upstream(upstream, "456", status="released"))
    assert table.read_text("utf-8").startswith("# Reviewed by hand.\n")
    assert (store.pin("2030-01-31").source, store.pin("2031-01-31").source) == ("456", "123")
    assert errata.read_text("utf-8") == "# None yet.\n"


@pytest.mark.parametrize("changed", [None, date(2030, 1, 1)])
@pytest.mark.parametrize("name", ["draft", "2030-13-01", "2030-01-01-rc1", "../2030-01-01"])
def test_a_released_revision_is_named_by_a_date(store: Store, tmp_path: Path, name: str, changed: date | None) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BadInput, match=r"is not a date|is not the name"):
        store.add(name, Upstream(tmp_path / "upstream.json", "abc", status="released", changed=changed))
    assert sorted(tmp_path.rglob("*")) == before


STRANGE = [
    "",
    "x" * 65,
    "2030-13-01",
    "a b",
    "a\nb",
    "a\\b",
    "\u00e4",
    ".",
    "..",
    "../x",
    "a/b",
    "-x",
    ".x",
    "x.",
    "a..b",
]


def test_unsafe_names_of_drafts_are_refused(store: Store, tmp_path: Path) -> None:
    for name in STRANGE:
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(BadInput, match=r"is not a date|is not the name of a revision"):
            store.add(name, Upstream(tmp_path / "upstream.json", "abc"))
        assert sorted(tmp_path.rglob("*")) == before


def test_a_draft_may_have_any_safe_name(store: Store, tmp_path: Path) -> None:
    for name in ["draft", "2027-01-15-rc1", "DRAFT-2026.v1", "2030-02-01_x", "7"]:
        assert store.add(name, Upstream(tmp_path / "upstream.json")).status == "draft"
        assert store.effective(name).draft


def test_a_revision_named_by_a_date_needs_a_commit(store: Store, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="give --commit"):
        store.add("2031-01-31", Upstream(tmp_path / "upstream.json"))


def test_revisions_are_sorted_by_date_and_a_draft_precedes_its_release(store: Store, tmp_path: Path) -> None:
    for name in ("draft", "2030-01-31-rc1", "2031-01-01", "Another", "2030-01-30"):
        store.add(name, Upstream(tmp_path / "upstream.json", "abc"))
    assert list(store.pins) == ["2030-01-30", "2030-01-31-rc1", "2030-01-31", "2031-01-01", "Another", "draft"]
    assert store.newest == "2031-01-01"


def test_removing_an_imported_revision_restores_the_folder(store: Store, tmp_path: Path) -> None:
    before = snapshot(store.root)
    store.add("2031-01-31", Upstream(tmp_path / "upstream.json", "def"))
    store.remove("2031-01-31")
    assert snapshot(store.root) == before
    assert not (store.root / "2031-01-31").exists()
    with pytest.raises(BadInput, match="no revision '2031-01-31'"):
        store.remove("2031-01-31")


@pytest.mark.parametrize("name", ["../upstream", "/", "", "."])
def test_revision_names_in_the_table_cannot_escape_the_folder(store: Store, tmp_path: Path, name: str) -> None:
    store.add("draft", Upstream(tmp_path / "upstream.json"))
    table = store.root / "revisions.toml"
    table.write_text(table.read_text("utf-8").replace("[draft]", f"[{quoted(name)}]"), "utf-8")
    with pytest.raises(BadInput, match="is not the name of a revision"):
        store.remove(name)


def test_a_revision_with_a_missing_or_extended_folder_can_be_removed(store: Store, tmp_path: Path) -> None:
    for name, content in (("gone", None), ("kept", "notes")):
        store.add(name, Upstream(tmp_path / "upstream.json"))
        if content is None:
            shutil.rmtree(store.root / name)
        else:
            (store.root / name / content).mkdir()
        store.remove(name)
        assert name not in store.pins
    assert [path.name for path in (store.root / "kept").iterdir()] == ["notes"]


def test_a_bad_file_is_not_imported(store: Store, tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        store.add("2031-01-31", Upstream(save(tmp_path / "bad.json", []), "abc", status="draft"))
    assert not (store.root / "2031-01-31").exists()
    assert list(store.pins) == ["2030-01-31"]


@pytest.mark.parametrize(
    "text", ["[2030", '[2030-01-31]\nera = "stateful"', "x = 1"], ids=["cut-off", "short", "no-table"]
)
def test_a_damaged_table_of_revisions_is_an_error(store: Store, text: str) -> None:
    (store.root / "revisions.toml").write_text(text, "utf-8")
    with pytest.raises(BadInput, match=r"revisions\.toml: "):
        store.effective("2030-01-31")


def test_nothing_is_imported_into_a_damaged_table(store: Store, tmp_path: Path) -> None:
    (store.root / "revisions.toml").write_text("[2030", "utf-8")
    with pytest.raises(BadInput, match=r"revisions\.toml: "):
        store.add("2031-01-31", Upstream(tmp_path / "upstream.json", "abc", status="draft"))
    assert not (store.root / "2031-01-31").exists()


@pytest.mark.full
@pytest.mark.skipif(not UPSTREAM.is_dir(), reason="the upstream files are not on this machine")
@pytest.mark.parametrize("revision", REVISIONS)
def test_each_committed_structure_equals_the_upstream_file(revision: str) -> None:
    assert Store().verify(revision, UPSTREAM / revision / "schema.json") == (True, [])


def test_each_committed_structure_matches_its_pin_and_is_canonical() -> None:
    for revision in REVISIONS:
        assert Store().is_pinned(revision)
        text = (ROOT / "schema" / revision / "schema.json").read_text("utf-8")
        assert text == dumps(canonical(json.loads(text)))


def test_any_text_can_be_quoted_as_a_printable_toml_string() -> None:
    for text in ["a", "\U0001f600", 'a"b\\', "\n\x7f\x9b\u2028", "\U000e0001"]:
        assert tomllib.loads(f"{quoted(text)} = {quoted(text)}") == {text: text}
        assert quoted(text).isprintable()


def test_each_json_value_has_a_type() -> None:
    values = ["", 1, 1.0, True, None, [], {}]
    assert list(map(json_type_of, values)) == ["string", "integer", "number", "boolean", "null", "array", "object"]
    assert is_json_type(1, "number")
    assert not is_json_type(1.0, "integer")
    with pytest.raises(TypeError, match="a value of type date is not JSON"):
        json_type_of(date(2026, 7, 28))


# --- roots, and references to places inside of definitions ------------------------------------------------------

INNER = record(Y=record(z=record("q", q=TEXT)), W={"$ref": "#/definitions/X/properties/Y"})
ROOTED = {
    **record("name", name={**TEXT, "meta:enum": {"a": "An a."}, "x-order": 1}, next={"$ref": "#"}),
    "title": "Server card",
    "definitions": {"X": INNER, "A B": TEXT},
}


def test_a_root_and_places_inside_of_definitions_become_definitions() -> None:
    schema = copy.deepcopy(ROOTED)
    schema["properties"] |= {
        "deep": {"$ref": "#/definitions/X/properties/Y/properties/z"},
        "own": {"$ref": "#/properties/name"},
        "quoted": {"$ref": "#/definitions/A%20B"},
    }
    found = normalise(schema)["$defs"]
    assert found.keys() == {"X", "A B", "XY", "XYZ", "ServerCard", "Name"}
    targets = {name: one["$ref"] for name, one in found["ServerCard"]["properties"].items()}
    assert targets == {
        "name": "#/$defs/Name",
        "own": "#/$defs/Name",
        "next": "#/$defs/ServerCard",
        "deep": "#/$defs/XYZ",
        "quoted": "#/$defs/A B",
    }
    assert found["X"]["properties"] == {"Y": {"$ref": "#/$defs/XY"}, "W": {"$ref": "#/$defs/XY"}}
    assert found["XY"]["properties"] == {"z": {"$ref": "#/$defs/XYZ"}}
    newer = json.loads(json.dumps(schema).replace("definitions", "$defs"))
    assert normalise(newer)["$defs"] == found
    alone = normalise({"type": "object", "properties": {"a": TEXT}})
    assert alone["$defs"] == {"Root": {"type": "object", "properties": {"a": TEXT}}}


def test_a_mistake_in_the_root_is_reported_at_its_place() -> None:
    schema = copy.deepcopy(ROOTED)
    schema["properties"]["name"]["requried"] = True
    schema["definitions"]["X"]["properties"]["Y"]["properties"]["z"]["not"] = {}
    context = DiagnosticContext(strict=False)
    normalise(schema, context)
    found = {one.pointer: one.reason.split("'")[1] for one in context.diagnostics}
    assert found == {"/properties/name/requried": "requried", "/definitions/X/properties/Y/properties/z/not": "not"}
