"""Go packages: formatted, compiled, exact on all vectors, and usable from a program."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

import pytest

from mcp_bindgen.emit.go.plugin import EMITTER
from mcp_bindgen.spec import Store
from mcp_bindgen.vectors import vector_files
from mcp_bindgen.vectors.run import run as run_vectors
from mcp_bindgen.vectors.testee import Testee
from tests.go.packages import DRAFT, packages, program, run
from tests.harness.commands import ROOT, inside, save
from tests.harness.effort import cases
from tests.harness.json_instances import Instances
from tests.harness.pages import blocks
from tests.harness.schema_damage import damaged
from tests.harness.small_schemas import draft

pytestmark = pytest.mark.full
REVISIONS = list(Store().pins)


def generate(*words: object, out: Path, command: str = "generate", code: int = 0) -> str:
    done = inside(command, *words, "--language", "go", "--out", out, code=code)
    return done.stdout + done.stderr


def test_packages_are_formatted_and_pass_go_vet() -> None:
    folder = packages()
    assert run("gofmt", "-l", ".", folder=folder).split() == ["testee/testee.go"]  # which has a line more for a draft
    assert run("gofmt", "-l", ROOT / "examples" / "testees" / "go", folder=folder) == ""
    assert run("go", "vet", "./...", folder=folder) == ""
    for file in folder.glob("mcp*/*.go"):
        text = file.read_text("utf-8")
        assert re.search(r"^// Code generated .* DO NOT EDIT\.$", text.partition("\npackage ")[0], re.M)


@pytest.mark.parametrize("revision", cases(REVISIONS, quick=["2025-11-25"]))
def test_all_vectors_get_their_verdict_and_no_document_loses_anything(revision: str) -> None:
    with Testee(str(program()), timeout=60.0) as testee:
        found = run_vectors(list(vector_files(Store(), [revision])), testee)
    assert found.judged[revision] > 2000
    assert [(one.name, one.kind, one.answer) for one in found.disagreements] == []


def test_limits_of_drafts_are_checked() -> None:
    near = Instances(DRAFT)
    valid, invalid = ([*one(300, 3000, "Limits")] for one in (near.valid, near.invalid))
    assert min(len(valid), len(invalid)) > 100
    with Testee(str(program()), timeout=60.0) as testee:
        for document, status in [*((one, "accepted") for one in valid), *((one, "rejected") for one in invalid)]:
            request = {"revision": "draft", "definition": "Limits", "text": json.dumps(document)}
            answer = testee.parse(request)
            assert answer.status == status, (document, answer)
            assert status == "rejected" or json.loads(answer.text) == document


def test_packages_of_damaged_schemas_are_formatted_and_compile(tmp_path: Path) -> None:
    for seed in range(8):
        schema = save(tmp_path / f"{seed}.json", damaged(draft(), Random(seed)))
        generate("--schema", schema, "--revision", "draft", "--package", f"p{seed}", out=tmp_path)
    (tmp_path / "go.mod").write_text("module example.com/acme\n\ngo 1.19\n", "utf-8")
    assert run("gofmt", "-l", ".", folder=tmp_path) == ""
    assert run("go", "build", "./...", folder=tmp_path) == ""


def test_an_error_names_the_place_and_the_reason() -> None:
    wrong = {
        '{"content": [{"type": "text"}]}': "/content/0/text: is missing",
        '{"content": [{"type": "texts"}]}': "/content/0: fits no alternative of ContentBlock",
        '{"content": null}': "/content: must be an array, not null",
        '{"content": [], "_meta": 1}': "/_meta: must be an object, not 1",
        "[]": "must be an object, not []",
    }
    with Testee(str(program()), timeout=60.0) as testee:
        for text, reason in wrong.items():
            answer = testee.parse({"revision": "2025-11-25", "definition": "CallToolResult", "text": text})
            assert (answer.status, answer.text) == ("rejected", reason)


def test_deprecated_types_fields_and_methods_have_the_comment_of_go() -> None:
    types, methods = ((packages() / "mcp20260728" / name).read_text("utf-8") for name in ("types.go", "methods.go"))
    assert re.search(r"//\n// Deprecated: .*\ntype CreateMessageResult struct", types)
    assert re.search(r"//\n\t// Deprecated: .*\n\t[A-Z]\w+ ", types)
    assert re.search(r"//\n\t// Deprecated: .*\n\tMethod\w+ = ", methods)
    assert "\t// Deprecated: log to stderr, or use OpenTelemetry (since 2026-07-28).\n" in methods


def test_initialisms_have_the_capitals_of_go() -> None:
    text = (packages() / "mcp20260728" / "types.go").read_text("utf-8")
    assert not re.findall(r"^(?:type |\t)\w*(?:Jsonrpc|JsonRpc|Uri|Id)\b", text, re.M)


def test_the_program_of_the_page_prints_the_output_of_the_page(tmp_path: Path) -> None:
    program, shown = (one.text for one in blocks(ROOT / "docs" / "how-to" / "go.md") if one.language in ("go", "text"))
    generate("2025-11-25", "--package", "mcp", out=tmp_path)
    (tmp_path / "go.mod").write_text("module example.com/acme\n\ngo 1.19\n", "utf-8")
    (tmp_path / "main.go").write_text(program, "utf-8")
    assert run("gofmt", "-l", ".", folder=tmp_path) == ""
    assert run("go", "run", ".", folder=tmp_path) == shown


def test_settings_give_a_module_and_other_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("go", "version", folder=tmp_path)
    Path("mcp-bindgen.toml").write_text(
        """
        revisions = ["2025-11-25"]
        languages = ["go"]

        [[packages]]
        name = "internal/{revision}"

        [packages.settings.go]
        import_path = "example.com/acme/mcp"
        formatter = ["gofmt"]
        names = {Tool = "ToolSpec", EmptyResult = "Nothing"}
        """
    )
    inside("generate", code=0)
    assert inside("check", code=0).stdout == "2025-11-25  in sync\n"
    package = Path("internal", "v20251125")
    assert "\nmodule example.com/acme/mcp\n" in (package / "go.mod").read_text()
    types = (package / "types.go").read_text()
    assert "\ntype ToolSpec struct {" in types
    assert "[]ToolSpec " in types
    assert "\npackage v20251125\n" in types
    run("go", "vet", ".", folder=package)


def test_the_page_lists_the_templates() -> None:
    page = (ROOT / "docs" / "how-to" / "go.md").read_text("utf-8")
    assert set(re.findall(r"^\| `([\w.]+jinja)` \|", page, re.M)) == set(EMITTER.templates)


@pytest.mark.parametrize("name", ["mcp-go", "Mcp", "a/type", "1mcp", "a//b", "../a", ""])
def test_a_package_that_go_cannot_import_is_refused(name: str, tmp_path: Path) -> None:
    said = generate("2025-11-25", "--package", name, out=tmp_path, code=2)
    assert "is not the name of a Go package" in said or not name
