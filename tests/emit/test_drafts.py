"""Drafts that break a rule: lenient mode writes bindings and reports each broken rule, strict mode stops."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_bindgen.emit import Model, Options
from mcp_bindgen.emit.python.bindings import emit
from mcp_bindgen.emit.python.environment import WIDTH, docstring
from mcp_bindgen.emit.python.lowered import PythonProtocol
from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.emit.python.naming import is_importable
from mcp_bindgen.emit.python.trial import try_import
from mcp_bindgen.http import HttpApp
from mcp_bindgen.ir import build
from mcp_bindgen.ir.examples import example
from mcp_bindgen.ir.model import Const, Object, Ref, Scalar, Type, Union
from mcp_bindgen.ir.prose import plain
from mcp_bindgen.ir.schema import document_of, schema_of
from mcp_bindgen.runtime import serve
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.spec import BadInput, Store, extend, external, read_extension
from mcp_bindgen.spec.diagnostics import rules
from mcp_bindgen.spec.json import join, split, step
from mcp_bindgen.spec.semantics import merge_semantics, read_semantics
from tests.harness.commands import ROOT, inside, save
from tests.harness.drafts import DRAFTS, TEXT, Draft
from tests.harness.effort import cases, examples
from tests.harness.schema_damage import damaged
from tests.harness.small_schemas import Schema, message, record, ref, small, union
from tests.harness.small_schemas import draft as draft_of_a_library

SEMANTICS = Store().semantics
DRAFT = Options("acme.draft", "mcp-bindgen generate")
FACT = re.compile(r"write (?P<fact>\S+ = .+) in a file for --semantics$")


def read(folder: Path, schema: Schema, facts: str = "") -> PythonProtocol:
    """Return the protocol model of a schema file, read leniently."""
    (folder / "facts.toml").write_text(facts, "utf-8")
    semantics = merge_semantics(SEMANTICS, read_semantics(folder / "facts.toml"))
    return lower(build(external(save(folder / "draft.json", schema), "draft", semantics)))


@pytest.mark.full
@pytest.mark.parametrize("draft", cases(DRAFTS, quick=DRAFTS[::4]))
def test_a_draft_becomes_bindings_with_diagnostics(tmp_path: Path, draft: Draft) -> None:
    protocol = read(tmp_path, draft.schema)
    first = protocol.diagnostics[0]
    assert {diagnostic.kind for diagnostic in protocol.diagnostics} >= {draft.kind}
    found = [diagnostic for diagnostic in protocol.diagnostics if diagnostic.kind == draft.kind]
    assert len(found) == 1
    assert found[0].pointer == draft.pointer
    assert draft.says in found[0].reason
    assert draft.interpretation in found[0].interpretation
    assert found[0].fix
    assert str(first).startswith(f"{tmp_path / 'draft.json'}#/")
    effective = external(tmp_path / "draft.json", "draft", SEMANTICS).definitions
    jsonschema_rs.Draft202012Validator({"$defs": dict(effective)})
    files = emit(Model(protocol), DRAFT)
    try_import(files)
    assert {name for name in draft.schema["$defs"] if is_importable(name)} <= exported(files["types.py"])


@pytest.mark.full
@pytest.mark.parametrize("draft", DRAFTS)
def test_diagnostics_have_places_fail_in_strict_mode_and_end_with_facts(tmp_path: Path, draft: Draft) -> None:
    protocol = read(tmp_path, draft.schema)
    first = protocol.diagnostics[0]
    with pytest.raises(BadInput) as caught:
        lower(build(external(tmp_path / "draft.json", "draft", SEMANTICS, strict=True)))
    error = caught.value
    assert (error.file, error.pointer, error.message, error.fix) == (first.file, first.pointer, first.reason, first.fix)
    assert str(error) == f"{tmp_path / 'draft.json'}#{first.pointer}: {first.reason}; {first.fix}"
    assert "\n" not in str(error)
    for diagnostic in protocol.diagnostics:
        node: Any = draft.schema
        for token in split(diagnostic.pointer):
            node = step(node, token)
    for value in draft.accepts:
        judges = [document_of(protocol), *([draft.schema] if "leads nowhere" not in draft.says else [])]
        for judge in judges:
            assert jsonschema_rs.Draft202012Validator({"$ref": "#/$defs/X", **judge}).is_valid(value)
    facts = {diagnostic: match["fact"] for diagnostic in protocol.diagnostics if (match := FACT.search(diagnostic.fix))}
    after = read(tmp_path, draft.schema, "\n".join(facts.values()))
    assert not facts.keys() & set(after.diagnostics)
    assert set(after.diagnostics) <= set(protocol.diagnostics)
    assert after.methods == protocol.methods


def test_a_fact_about_an_unknown_definition_is_reported(tmp_path: Path) -> None:
    (diagnostic,) = read(tmp_path, small(), 'results."books/find" = "Gone"').diagnostics
    assert (diagnostic.kind, diagnostic.pointer) == ("result-assumed", "/$defs/FindBookRequest")
    assert diagnostic.reason.endswith("there is no Gone")


@pytest.mark.full
def test_every_kind_of_diagnostic_has_a_draft() -> None:
    assert {draft.values[0].kind for draft in DRAFTS} == kinds()


def test_every_kind_of_diagnostic_is_documented() -> None:
    rows = re.findall(r"^\| (`[^|]+) \|", (ROOT / "docs" / "how-to" / "drafts.md").read_text("utf-8"), re.MULTILINE)
    assert kinds() <= {name for row in rows for name in re.findall("`([a-z-]+)`", row)}


@cache
def kinds() -> set[str]:
    """Return the kinds of broken rules that the generator reports."""
    code = [path.read_text("utf-8") for path in (ROOT / "generator").rglob("*.py")]
    reported = {rule for text in code for rule in re.findall(r'\.report\(\s*"([a-z-]+)"', text)}
    assert reported == rules().keys()
    return {rules()[rule].get("kind", rule) for rule in reported}


@pytest.mark.parametrize(
    ("members", "type", "lines"),
    [
        ([{"const": "a", "description": "The\n1st."}, {**TEXT, "const": "b"}], Const(("a", "b")), ["- `a`: The 1st."]),
        ([{"enum": ["a", "b"], "title": "Two."}, {"const": "c"}], Const(("a", "b", "c")), ["- `a`, `b`: Two."]),
        ([{"const": 1, "description": "One."}, {"const": 2}], Const((1, 2)), ["- `1`: One."]),
        ([{"oneOf": [{"const": "a", "description": "A."}]}, {"const": "b"}], Const(("a", "b")), ["- `a`: A."]),
        ([{"const": "a"}, {"type": "null"}, {"const": "b"}], Union((Const(("a", "b")), Scalar("null"))), []),
        ([ref("One"), ref("Two")], Union((Ref("One"), Ref("Two"))), []),
    ],
)
def test_a_one_of_of_constants_is_an_enumeration(
    tmp_path: Path, members: list[Any], type: Type, lines: list[str]
) -> None:
    parts = {"One": {"const": "1"}, "Two": {"enum": ["2", "3"]}}
    choice = {"oneOf": members, "description": "Choice."}
    schema = small(X=choice, Holder=record(x=choice, xs={"type": "array", "items": choice}), **parts)
    protocol = build(external(save(tmp_path / "draft.json", schema), "draft", SEMANTICS, strict=True))
    assert (protocol.definitions["X"].type, protocol.definitions["X"].doc.split("\n")[2:]) == (type, lines)
    holder = protocol.definitions["Holder"].type
    assert isinstance(holder, Object)
    assert [field.doc.split("\n")[-1] for field in holder.fields] == [*(lines or ["Choice."]), *(lines or [""])]


def test_constants_accepted_by_two_one_of_members_overlap(tmp_path: Path) -> None:
    rows: list[list[Any]] = [
        *([{"const": "a"}, {"enum": ["b", "a"]}], [{"const": "a"}, TEXT]),
        *([{"anyOf": [{"const": "a"}, True]}, {"const": "b"}], [{"const": 1}, {"type": "number"}]),
        *([ref("One"), {"const": "1"}], [record("kind", kind={"const": "a"}), record(kind={"const": "b"})]),
    ]
    read_rows = [read(tmp_path, small(X={"oneOf": members}, One={"const": "1"})).diagnostics for members in rows]
    assert [[diagnostic.kind for diagnostic in diagnostics] for diagnostics in read_rows] == [
        ["one-of-overlaps"]
    ] * len(rows)


def test_objects_with_different_constants_do_not_overlap(tmp_path: Path) -> None:
    members = [record("kind", kind={"const": kind}, x=TEXT) for kind in "ab"]
    schema = small(X={"oneOf": [*members, ref("C")]}, C=record("kind", kind={"const": "c"}))
    assert read(tmp_path, schema).diagnostics == ()


def test_doc_comments_become_plain_text() -> None:
    for written, read in [
        ("See {@link Tool}.", "See `Tool`."),
        ("See {@link Tool | the tool} or {@link Tool|tool}.", "See the tool or `tool`."),
        ("{@link CallToolRequesttools/call} or {@link InitializeRequestinitialize}.", "`tools/call` or `initialize`."),
        ("The {@link Tool`_meta` key rules}, {@link Tool.a.b}.", "The `_meta` key rules, `Tool.a.b`."),
        ("{@link https://a.org/a?b | Page}, {@link https://a.org}.", "Page (https://a.org/a?b), https://a.org."),
        ("`{@link Tool}`, {@linkcode Other}, [words here]{@link Tool}", "`Tool`, `Other`, words here"),
        ("A.\n@see {@link Tool}\n@internal", "A.\nSee `Tool`"),
        ("@example <caption>One</caption>\n```ts\n@x {\n  a\n```\nB.", "Example: One\n\n    @x {\n      a\n\nB."),
        ("/** @internal */", ""),
        ("Mail ada@example.org, {@link, {@link }", "Mail ada@example.org, {@link,"),
    ]:
        assert plain(written, {"Tool", "CallToolRequest", "InitializeRequest"}) == read


@pytest.mark.parametrize("part", ["*", "*/", "{@link ", "[a]{@link", "@a ", "```\n", "<caption>"])
def test_the_time_to_read_prose_grows_with_its_length_only(part: str) -> None:
    begun = process_time()
    plain("/**x" + part * 100_000 + "@", set())
    assert process_time() - begun < 2


HOSTILE = (
    'First:\n\n  - one: a\n  - two\n\n```py\ndef f():\n    """x"""\n```\n\\ {@link FindBookRequest} \x00 '
    "\u2028 Args:\n  title: no\n\n" + "long " * 40
)


def test_hostile_descriptions_keep_the_argument_section_intact(tmp_path: Path) -> None:
    code = ('"""', "a\\", "```\ncode", "x: y\nArgs:\n    other: z", "- item\n\n- item")
    texts = (HOSTILE, "Args:", ":", "\n\nafter", *code)
    described = [{**TEXT, "description": text} for text in (*texts, "\x00", " ", "")]
    members = record(**{f"member{number}": schema for number, schema in enumerate(described)})
    files = emit(Model(read(tmp_path, small(FindBookRequestParams=members))), DRAFT)
    try_import(files)
    assert "{@link" not in "".join(files.values())
    tree = ast.parse(files["client.py"])
    (method,) = (node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef) and node.name == "find_book")
    _, section = (ast.get_docstring(method) or "").split("\nArgs:\n")
    lines = [line for line in section.splitlines() if line]
    assert all(line.startswith("    ") for line in lines)
    names = [line.partition(":")[0].strip() for line in lines if not line.startswith("     ")]
    assert names == [f"member{number}" for number in range(len(texts))]
    assert max(map(len, files["client.py"].splitlines())) <= WIDTH


@pytest.mark.parametrize("indent", [0, 4, 8])
def test_the_quotes_of_a_docstring_stand_alone_only_below_several_lines(indent: int) -> None:
    shapes = set[int]()
    for size in range(80, 130):
        lines = f"{' ' * indent}{docstring(('word ' * 30)[:size], indent)}".splitlines()
        assert max(map(len, lines)) <= WIDTH
        assert (lines[-1].strip() == '"""') == (len(lines) > 1)
        shapes.add(len(lines))
    assert shapes == {1, 3}


@pytest.mark.anyio
async def test_bindings_without_a_lifecycle_refuse_to_connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = save(tmp_path / "draft.json", small())
    done = inside("generate", "--schema", file, "--revision", "draft", "--out", tmp_path, "--package", "lsp_like")
    lacks = "DiscoverRequest, ClientCapabilities, Implementation, ServerCapabilities"
    assert done.stderr.strip() == f"draft: types and stubs only, nothing can connect: there is no {lacks}"
    monkeypatch.syspath_prepend(str(tmp_path))
    bindings = import_module("lsp_like")
    ends = pair()
    refused = pytest.raises(ValueError, match=f"types and stubs only: their schema has no {lacks}; add")
    with refused:
        await bindings.Client.connect(ends[0]).__aenter__()
    with refused:
        await serve(ends[1], bindings.Server())
    with refused:
        HttpApp(bindings.Server())
    for end in ends:
        await end.close()


@pytest.mark.parametrize(
    ("language", "files"),
    [
        ("python", {"__init__.py", "types.py", "py.typed"}),
        ("typescript", {"index.ts", "package.json", "tsconfig.json", "types.ts", "validation.ts", "validators.ts"}),
    ],
)
def test_a_schema_without_messages_becomes_types_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str, files: set[str]
) -> None:
    numbers = {f"a {number}": TEXT for number in range(9)}
    file = save(tmp_path / "card.json", {**record("name", name=TEXT), "title": "Card", "$defs": numbers})
    package = f"card_{language}"
    own = ("--out", tmp_path, "--package", package, "--language", language)
    done = inside("generate", "--schema", file, "--revision", "draft", *own, code=0)
    assert {path.name for path in (tmp_path / package).iterdir() if path.is_file()} == files
    assert done.stderr.splitlines()[-1].startswith("draft: types only, nothing can connect: there is no message")
    if language == "python":
        monkeypatch.syspath_prepend(str(tmp_path))
        assert import_module(package).types.Card(name="a").name == "a"
        assert len(found := [line for line in done.stderr.splitlines() if "cannot be a name" in line]) == 1
        assert found[0].endswith(" (definition-name: 9 places, as #/$defs/a 1, #/$defs/a 2)")


def test_requests_of_either_side_may_have_several_result_types(tmp_path: Path) -> None:
    files = emit(Model(read(tmp_path, answered_in_several_ways())), DRAFT)
    try_import(files)
    assert {name for name, text in files.items() if "ExtensionResult" in text} == {"client.py", "server.py"}


def test_requests_of_an_extension_may_have_several_result_types(tmp_path: Path) -> None:
    facts = tmp_path / "lend.toml"
    head = '[extension]\nid = "com.example/lend"\ncore = ["2026-07-28"]'
    facts.write_text(f'{head}\n[roles]\nLendBookRequest = "both"\n', "utf-8")
    own = {name: schema for name, schema in answered_in_several_ways()["$defs"].items() if name not in ROLES}
    core = Store().effective("2026-07-28")
    protocol = build(extend(core, read_extension(save(tmp_path / "lend.json", {"$defs": own}), facts, core)))
    options = Options("acme.lend", "mcp-bindgen generate", "com.example/lend", "mcp_bindgen.v2026_07_28")
    files = emit(Model(protocol), options)
    try_import(files)
    assert {name for name, text in files.items() if "ExtensionResult" in text} == {"client.py", "server.py"}


ROLES = ("ClientRequest", "ServerRequest")


def answered_in_several_ways() -> Schema:
    """Return a schema in which both sides send a request with two possible results, each marked by its `resultType`."""
    answers = {name: record("resultType", resultType={"const": name.lower(), **TEXT}) for name in ("Lent", "Pending")}
    response = record("result", result=union(*answers))
    both = dict.fromkeys(ROLES, union("LendBookRequest"))
    return small(
        {**both, **answers, "LendBookRequest": message("books/lend"), "LendBookResultResponse": response},
        FindBookRequest=None,
    )


def test_our_own_revisions_have_no_diagnostics() -> None:
    store = Store()
    for revision in store.pins:
        source = store.effective(revision)
        assert source.context.strict
        assert build(source).diagnostics == ()


def test_the_drafts_are_json() -> None:
    for draft in DRAFTS:
        assert json.loads(json.dumps(draft.values[0].schema)) == draft.values[0].schema


# --- random damage --------------------------------------------------------------------------------------------

NO_SCHEMA = ("half of a character", "nested too deeply", "too often")
"""Parts of the errors for documents that are not read as schemas."""


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Return values of every definition of the undamaged draft, and values of no definition."""
    whole = read(tmp_path_factory.mktemp("whole"), draft_of_a_library())
    valid = [example(whole, one.type, full=full) for one in whole.definitions.values() for full in (False, True)]
    return [*valid, None, 1, 1.5, "a", [], {}, {"a": "a"}, {"method": "echo"}, True]


@pytest.mark.full
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(150, 800), deadline=None)
def test_a_damaged_schema_is_never_read_as_a_narrower_schema(
    seed: int, samples: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    schema = damaged(draft_of_a_library(), Random(seed))
    protocol = read_or_refuse(tmp_path_factory.getbasetemp(), schema)
    if protocol is None or "members-without-type" in {diagnostic.kind for diagnostic in protocol.diagnostics}:
        return  # a definition with members is read as an object, although the schema accepts other values too
    ours = document_of(protocol)
    names = {protocol.schema_names.get(name, name): name for name in protocol.definitions}
    for name in schema["$defs"].keys() & names.keys():
        theirs = validator(name, schema)
        valid = [value for value in samples if theirs is not None and theirs.is_valid(value)]
        model = jsonschema_rs.Draft202012Validator({**schema_of(Ref(names[name])), **ours})
        assert [value for value in valid if not model.is_valid(value)] == []


@pytest.mark.full
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(8, 50), deadline=None)
def test_bindings_of_a_damaged_schema_can_be_imported(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    schema = damaged(draft_of_a_library(), Random(seed))
    protocol = read_or_refuse(tmp_path_factory.getbasetemp(), schema)
    if protocol is not None:
        files = emit(Model(protocol), DRAFT)
        try_import(files)
        assert {name for name in schema["$defs"] if is_importable(name)} <= exported(files["types.py"])


def read_or_refuse(folder: Path, schema: Schema) -> PythonProtocol | None:
    """Return the protocol model of a schema, or None if the document is no schema."""
    try:
        return read(folder, schema)
    except BadInput as error:
        if any(words in error.message for words in NO_SCHEMA):
            return None
        raise


def validator(name: str, schema: Schema) -> jsonschema_rs.Draft202012Validator | None:
    """Return a validator of a definition, or None if it or a definition that it refers to is no JSON Schema."""
    reached: Schema = {}
    pending = [name]
    while pending:
        here = pending.pop()
        if here in schema["$defs"] and here not in reached:
            reached[here] = schema["$defs"][here]
            pending += re.findall(r'"#/\$defs/([^"]*)"', json.dumps(reached[here]))
    try:
        return jsonschema_rs.Draft202012Validator({"$ref": f"#{join('/$defs', name)}", "$defs": reached})
    except (jsonschema_rs.ValidationError, ValueError):
        return None


def exported(types: str) -> set[str]:
    """Return the names in `__all__` of a module."""
    stated = [node for node in ast.parse(types).body if ast.unparse(node).startswith("__all__ = ")]
    assert isinstance(stated[0], ast.Assign)
    return set(ast.literal_eval(stated[0].value))
