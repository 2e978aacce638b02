"""Texts of schemas and contracts cannot choose the encoding of generated Python files (PEP 263).

With some encodings, text would become code.
"""

from __future__ import annotations

import ast
import io
import json
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest

from mcp_bindgen.conversion.rules import Rule, Rules
from mcp_bindgen.conversion.steps import plan
from mcp_bindgen.emit import Model, Options
from mcp_bindgen.emit.python import environment as emitted
from mcp_bindgen.emit.python.bridges import emit
from mcp_bindgen.scaffold import rendering
from mcp_bindgen.spec import Store
from tests.contract.code.test_contract_package import NEWEST
from tests.harness.bridging import REVISIONS, protocol
from tests.harness.commands import inside, save
from tests.harness.effort import examples

pytestmark = pytest.mark.full

FOREIGN = "Mallory"
DECLARATIONS = [
    f"{FOREIGN} 1.0 (encoding: utf-7)",
    f"coding: unicode_escape {FOREIGN}",
    f"# -*- coding: raw_unicode_escape -*- {FOREIGN}",
    f"{FOREIGN}\n# coding: utf-7\n# coding: utf-7",
    f"# coding=utf-7\r# coding: utf-7\f# coding: utf-7 {FOREIGN}",
    f"{FOREIGN} # vim: set fileencoding=unicode_escape :",
][: examples(2, 3)]


def offered(text: str) -> dict[str, Any]:
    """Return a contract with `text` wherever a description is allowed."""
    said = {"title": text, "description": text}
    schema = {"type": "object", **said, "properties": {"text": {"type": "string", **said, "default": text}}}
    return {
        "serverInfo": {"name": text, "title": text, "version": text},
        "instructions": text,
        "tools": [{"name": "tool", **said, "inputSchema": schema, "outputSchema": schema}],
        "prompts": [{"name": text, **said, "arguments": [{"name": "word", "description": text}]}],
        "resources": [{"uri": "memo://one", "name": text, **said}],
        "resourceTemplates": [{"uriTemplate": "memo://{id}", "name": text, **said}],
    }


def documented(text: str) -> dict[str, Any]:
    """Return a schema of the protocol with `text` as the description of everything."""
    schema: dict[str, Any] = json.loads((Store().root / NEWEST / "schema.json").read_text("utf-8"))
    for definition in schema["$defs"].values():
        for node in (definition, *definition.get("properties", {}).values()):
            node |= {"title": text, "description": text}
    return schema


def extending(text: str) -> dict[str, Any]:
    """Return the schema of an extension with a method, a notification and another result for a method of the core."""
    says = {"description": text, "title": text}
    told: dict[str, Any] = {**says, "type": "object", "properties": {text: {**says, "type": "string"}}}
    answer = {**told, "properties": {"resultType": {"const": text}}, "required": ["resultType"]}
    members = {"method": {"const": f"says/{text}"}, "params": told}
    ask = {**told, "properties": members, "required": ["method", "params"]}
    tell = {**ask, "properties": {**members, "method": {"const": f"notifications/{text}"}}}
    named = {"AskRequest": ask, "AskResult": told, "TellNotification": tell, "OtherResult": answer, "More": told}
    return {"$defs": named}


def stated(text: str) -> str:
    """Return the facts of the extension."""
    word = json.dumps(text)
    return f"""
[extension]
id = "com.example/says"
version = "1"
core = ["{NEWEST}"]
doc = {word}
settings = {{ client = "More", server = "More" }}

[roles]
AskRequest = "client"
TellNotification = "server"

[alternatives]
"tools/call" = ["OtherResult"]

[meta.{word}]
Tool = "More"
"""


def write_everything(folder: Path, text: str) -> None:
    """Run each command that writes Python, on files that contain `text`, also in their names where possible."""
    name = text.replace("/", "-")
    offer = save(folder / f"{name}.json", offered(text))
    schema = save(folder / f"{name} schema.json", documented(text))
    extension = save(folder / f"{name} extension.json", extending(text))
    facts = folder / f"{name} facts.toml"
    facts.write_text(stated(text), "utf-8")
    draft = ["generate", "--schema", schema, "--revision", "draft", "--out", folder / "bindings", "--package"]
    own = ["--extension", extension, "--semantics", facts, "--out", folder / "bindings", "--package", "own"]
    both = ["--transport", "stdio,http", "--revision", NEWEST]
    for command in (
        [*draft, "draft"],
        [*draft, "types_only", "--only", "types"],
        ["generate", NEWEST, *own],
        ["client", "--from", offer, "--out", folder / "typed.py"],
        ["scaffold", "server", "kept", "--contract", offer, "--out", folder, *both],
        ["scaffold", "client", "typing-client", "--contract", offer, "--out", folder, "--revision", NEWEST],
        ["scaffold", "server", "plain", "--with", "tools,prompts", "--auth", "--out", folder, *both],
        ["scaffold", "server", "functions", "--out", folder],
        ["scaffold", "client", "asking", "--with", "sampling,roots", "--out", folder, "--revision", NEWEST],
    ):
        inside(*command, code=0)
    because: Rules = {("CallToolResult", "structuredContent"): Rule("refuse", text, path=("CallToolResult", text))}
    (folder / "bridges").mkdir()
    step = plan(protocol(REVISIONS[-1]), protocol(REVISIONS[-2]), because)
    for file, code in emit(Model(protocol(REVISIONS[-1]), (step,)), Options("bridges", "generate")).items():
        (folder / "bridges" / file).write_text(code, "utf-8")


@pytest.fixture(scope="module")
def rendered() -> Iterator[set[str]]:
    """Yield the names of the templates that are rendered."""
    seen: set[str] = set()
    find = jinja2.Environment.get_template

    def noting(self: jinja2.Environment, name: Any, *more: Any, **others: Any) -> jinja2.Template:
        seen.add(str(name))
        return find(self, name, *more, **others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jinja2.Environment, "get_template", noting)
        yield seen


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, rendered: set[str]) -> dict[str, dict[str, bytes]]:
    """Return all Python files that are written for each text."""
    found: dict[str, dict[str, bytes]] = {}
    for text in DECLARATIONS:
        folder = tmp_path_factory.mktemp("written")
        write_everything(folder, text)
        found[text] = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.py")}
    return found


def test_these_tests_cover_every_template(written: dict[str, dict[str, bytes]], rendered: set[str]) -> None:
    for root in (emitted.TEMPLATES, rendering.TEMPLATES):
        assert {path.relative_to(root).as_posix() for path in root.rglob("*.py.jinja")} <= rendered
    for files in written.values():
        assert {f"bindings/draft/{path.stem}" for path in emitted.TEMPLATES.glob("*.py.jinja")} <= files.keys()
        for folder, package in (("extension", "own"), ("types_only", "types_only")):
            names = [path.name.removesuffix(".jinja") for path in (emitted.TEMPLATES / folder).glob("*.py.jinja")]
            assert {f"bindings/{package}/{name}" for name in names} <= files.keys()
        assert {f"kept/src/kept/contract/{name}.py" for name in ("__init__", "base", "models")} <= files.keys()


@pytest.mark.parametrize("text", DECLARATIONS)
def test_untrusted_text_never_chooses_an_encoding(written: dict[str, dict[str, bytes]], text: str) -> None:
    said = 0
    for name, raw in written[text].items():
        encoding, lines = tokenize.detect_encoding(io.BytesIO(raw).readline)
        assert encoding == "utf-8", name
        top = b"".join([*lines, *raw.splitlines()[:2]]).decode()
        assert FOREIGN not in top, name
        assert "coding" not in top, name
        assert ast.dump(ast.parse(raw)) == ast.dump(ast.parse(raw.decode())), name
        said += FOREIGN.encode() in raw
    assert said >= 4  # bindings, a typed client, and files generated from a contract
