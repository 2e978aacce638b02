"""The protocol atlas: complete, equal to the schemas, and with examples that a JSON Schema validator accepts."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from website.atlas.indexes import index_pages
from website.atlas.model import Atlas, definition_page, method, method_page, relative_links, store
from website.atlas.subjects import subject_pages
from website.markdown import Pages
from website.sources import ROOT

from mcp_bindgen.ir.model import Object
from mcp_bindgen.spec import EffectiveSchema, named
from mcp_bindgen.vectors.suite import Judge
from tests.harness.browser import Outline
from tests.harness.hostile_schemas import hostile_store

_FIELD = re.compile(r"^\| `([^`]+)`\{ #[^}]* \} \| .*? \| (yes)? ?\|", re.MULTILINE)
_BLOCK = re.compile(r"^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def atlas() -> Atlas:
    return Atlas(store())


@pytest.fixture(scope="module")
def pages(atlas: Atlas) -> Pages:
    return relative_links({**index_pages(atlas), **subject_pages(atlas)})


@pytest.fixture(scope="module")
def schemas(atlas: Atlas) -> dict[str, EffectiveSchema]:
    found = {one.revision: named(one.revision, atlas.store) for one in atlas.cores}
    ids = tuple(one.id for one in atlas.newest.extensions)
    return {**found, atlas.newest.revision: named(atlas.newest.revision, atlas.store, None, ids)}


def examples(page: str) -> list[object]:
    return [json.loads(text) for text in _BLOCK.findall(page)]


@pytest.mark.full
def test_each_name_of_each_schema_has_a_page(schemas: dict[str, EffectiveSchema], pages: Pages) -> None:
    names = {name for schema in schemas.values() for name in schema.definitions}
    assert {name for name in names if definition_page(name) not in pages} == set()
    text = json.dumps([dict(one.definitions) for one in schemas.values()])
    methods = {one for one in re.findall(r'"const": "([^"]+)"', text) if "/" in one and not one.startswith("ref/")}
    assert len(methods) > 30
    assert {name for name in methods if method_page(name) not in pages} == set()


def test_examples_of_definitions_are_valid(atlas: Atlas, schemas: dict[str, EffectiveSchema], pages: Pages) -> None:
    judges = {revision: Judge(schema.definitions) for revision, schema in schemas.items()}
    wrong: list[str] = []
    shown = 0
    for name, subject in atlas.definitions.items():
        revision = subject.protocol.revision
        for value in examples(pages[definition_page(name)]):
            if name in schemas[revision].definitions:
                shown += 1
                wrong += [] if judges[revision].accepts(name, value) else [name]
    assert wrong == []
    assert shown > 200


def test_example_messages_and_responses_are_valid(
    atlas: Atlas, schemas: dict[str, EffectiveSchema], pages: Pages
) -> None:
    judges = {revision: Judge(schema.definitions) for revision, schema in schemas.items()}
    for name, subject in atlas.methods.items():
        found = method(subject.protocol, name)
        assert found is not None
        judge = judges[subject.protocol.revision]
        message, *answers = examples(pages[method_page(name)])
        assert judge.accepts(found.definition, message), (name, message)
        assert len(answers) == (found.kind == "request")
        for answer in answers:
            assert isinstance(answer, dict)
            result = answer["result"] if found.carrier == "message" else answer
            assert judge.accepts(str(getattr(found.result, "name", "")), result), (name, answer)


def test_since_is_the_first_schema_with_the_name(
    atlas: Atlas, schemas: dict[str, EffectiveSchema], pages: Pages
) -> None:
    """This compares definitions that were never renamed with the schema files; a type may have been inline before."""
    exact = 0
    redefined = {name for step in atlas.steps for name in step.matches.redefined}
    for name in schemas["2025-11-25"].definitions.keys() - redefined:
        since = re.search(r"^\| since \| \[([\d-]+)\]", pages[definition_page(name)], re.MULTILINE)
        if since is not None and "| other names |" not in pages[definition_page(name)]:
            having = [revision for revision, schema in schemas.items() if name in schema.definitions]
            inline = [one.revision for one in atlas.cores if name in one.definitions]
            exact += since[1] == having[0]
            assert since[1] in (having[0], inline[0]), name
    assert exact > 100


def test_a_page_lists_the_fields_of_the_schema(atlas: Atlas, schemas: dict[str, EffectiveSchema], pages: Pages) -> None:
    for name, subject in atlas.definitions.items():
        schema = schemas[subject.protocol.revision].definitions.get(name)
        if schema is None or not isinstance(subject.protocol.definitions[name].type, Object):
            continue
        rows = _FIELD.findall(pages[definition_page(name)])
        stated = schema.get("properties", {})
        if "allOf" not in schema and {"jsonrpc", "id"}.isdisjoint(stated):
            assert {wire for wire, _ in rows} >= set(stated), name
            assert {wire for wire, required in rows if required} >= set(schema.get("required", ())), name


def test_flow_diagrams_name_the_messages(pages: Pages) -> None:
    flows = {name: re.findall(r"^```mermaid\n(.*?)^```$", text, re.M | re.S) for name, text in pages.items()}
    call = flows[method_page("tools/call")]
    assert "InputRequiredResult" in call[0]
    assert "elicitation/create" in call[0]
    assert any("server->>client: request elicitation/create" in flow for flow in call[1:])
    assert "notifications/resources/updated" in flows[method_page("subscriptions/listen")][0]
    assert "initialize" in flows["atlas/revisions/2025-11-25.md"][0]
    assert "server/discover" in flows["atlas/revisions/2026-07-28.md"][0]
    assert "CreateTaskResult" in flows["atlas/extensions/tasks.md"][0]
    assert all(flows[name] for name in pages if name.startswith("atlas/methods/") and not name.endswith("index.md"))


def test_errors_and_capabilities_have_anchors(atlas: Atlas, pages: Pages) -> None:
    for protocol in atlas.protocols:
        for error in protocol.errors:
            assert f"`{error.code}` {error.name} {{ #{error.name} }}" in pages["atlas/errors.md"]
        for capability in protocol.capabilities:
            assert f"{{ #{capability.name} }}" in pages["atlas/capabilities.md"]


@pytest.mark.full
def test_a_hostile_draft_adds_no_html_and_leaves_no_folder(tmp_path: Path) -> None:
    """The reader of the site's Markdown unescapes fewer characters than GitHub, and reads attributes in braces."""
    atlas = Atlas(hostile_store(tmp_path))
    found = relative_links({**index_pages(atlas), **subject_pages(atlas)})
    assert [name for name in found if not re.fullmatch(r"atlas/(\w+/)?[\w.~-]+\.md", name) or ".." in name] == []
    assert found["atlas/definitions/index.md"].startswith("# Definitions")
    extensions = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["markdown_extensions"]
    render = import_module("markdown").Markdown(extensions=[name for name in extensions if name != "toc"]).convert
    assert not [name for name, text in found.items() if "\u202e" in text]
    evil = {name: text for name, text in found.items() if "img" in text or "script" in text or "onclick" in text}
    assert len(evil) > 8
    for name, text in evil.items():
        outline = Outline(render(text))
        assert {"img", "script"}.isdisjoint(tag for tag, _ in outline.elements), name
        assert not [key for _, attributes in outline.elements for key in attributes if key.startswith("on")], name
        assert not [link for link in outline.values("href") if link.startswith("javascript:")], name
