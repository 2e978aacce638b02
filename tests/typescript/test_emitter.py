"""Packages on the command line: names, folders, extensions, templates and `check`."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from random import Random

import pytest

from mcp_bindgen.emit import Model, Options
from mcp_bindgen.emit.typescript.package import comment
from mcp_bindgen.emit.typescript.plugin import EMITTER
from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import AnyValue, Array, Const, Definition, Field, Object, Ref, Scalar, Tuple, Type, Union
from tests.harness.commands import ROOT, Done, inside, save
from tests.harness.schema_damage import damaged
from tests.harness.small_schemas import draft
from tests.interop.processes import node

TEXT = Scalar("string")
LONG = Const(("a" * 40, "b" * 40, "c" * 40))


def generate(*words: object, out: Path, command: str = "generate") -> Done:
    return inside(command, *words, "--language", "typescript", "--out", out)


def test_packages_are_named_after_revision_and_extension(tmp_path: Path) -> None:
    assert generate("2025-11-25", "2026-07-28", out=tmp_path).returncode == 0
    assert generate("2026-07-28", "--extension", "tasks", out=tmp_path).returncode == 0
    assert generate("2024-11-05", "--package", "@acme/mcp.old", out=tmp_path).returncode == 0
    files = {path.parent.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("package.json")}
    assert {*files} == {"mcp-2025-11-25", "mcp-2026-07-28", "mcp-2026-07-28-tasks", "@acme/mcp.old"}
    about = json.loads(files["@acme/mcp.old"].read_text("utf-8"))
    assert (about["name"], about["version"], about["type"]) == ("@acme/mcp.old", "2024.11.5", "module")
    methods = (tmp_path / "mcp-2026-07-28-tasks" / "methods.ts").read_text("utf-8")
    assert '"tasks/get": {' in methods
    assert '"tools/call": {' in methods
    assert "validators.CreateTaskResult" in methods


@pytest.mark.full
def test_check_reports_changes_and_ignores_files_of_npm(tmp_path: Path) -> None:
    assert generate("2025-11-25", out=tmp_path).returncode == 0
    package = tmp_path / "mcp-2025-11-25"
    (package / "dist").mkdir()
    (package / "dist" / "index.js").write_text("export {};\n", "utf-8")
    (package / "package-lock.json").write_text("{}\n", "utf-8")
    assert generate("2025-11-25", out=tmp_path, command="check").returncode == 0
    types = package / "types.ts"
    types.write_text(types.read_text("utf-8").replace("export type Tool =", "export type Spanner ="), "utf-8")
    done = generate("2025-11-25", out=tmp_path, command="check")
    assert done.returncode == 1
    assert "-export type Spanner =" in done.stdout
    assert generate("2025-11-25", out=tmp_path).returncode == 0
    assert "export type Tool =" in types.read_text("utf-8")


@pytest.mark.parametrize("name", ["Upper", "two words", "../up", "@scope", "a" * 215])
def test_an_invalid_npm_package_name_is_refused(name: str, tmp_path: Path) -> None:
    done = generate("2025-11-25", "--package", name, out=tmp_path)
    assert done.returncode == 2
    assert "is not the name of an npm package; use small letters" in done.stderr
    assert not [*tmp_path.iterdir()]


def test_a_user_template_replaces_the_built_in_template(tmp_path: Path) -> None:
    templates = tmp_path / "templates"
    templates.mkdir()
    (templates / "errors.ts.jinja").write_text("export const count = {{ protocol.errors | length }};\n", "utf-8")
    assert generate("2025-11-25", "--templates", templates, out=tmp_path).returncode == 0
    assert "export const count = " in (tmp_path / "mcp-2025-11-25" / "errors.ts").read_text("utf-8")
    wrong = {
        "{{ nothing }}": "errors.ts.jinja line 1: 'nothing' is undefined",
        "\n{% if %}": "errors.ts.jinja line 2: Expected",
    }
    for text, problem in wrong.items():
        (templates / "errors.ts.jinja").write_text(text, "utf-8")
        done = generate("2025-11-25", "--templates", templates, out=tmp_path)
        assert done.returncode == 2
        assert problem in done.stderr


def written(tmp_path: Path, **definitions: Type) -> Path:
    """Write the package of a protocol with these definitions, and return its folder."""
    found = {name: Definition(name, type, doc="A */ comment.") for name, type in definitions.items()}
    protocol = Protocol("made-up", "stateful", "0" * 64, found, ())
    for name, text in EMITTER.emit(Model(protocol), Options("made-up", "none")).items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def verdicts(folder: Path, *cases: tuple[str, str]) -> list[str | None]:
    """Return the fault of each document, or None; a document has the name of a validator."""
    program = """
        const validators = await import(process.argv[1]);
        await import(process.argv[1].replace("validators", "types"));
        const faults = JSON.parse(process.argv[2]).map(([name, text]) => {
          const parsed = validators[name].safeParse(JSON.parse(text));
          return parsed.success ? null : parsed.error.message;
        });
        console.log(JSON.stringify(faults));
    """
    command = [node(), "--input-type=module", "-e", program, (folder / "validators.ts").as_uri(), json.dumps(cases)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[str | None] = json.loads(done.stdout)
    return found


def test_members_may_have_reserved_javascript_names(tmp_path: Path) -> None:
    names = ["__proto__", "constructor", "toString", "a b", "class"]
    fields = tuple(Field(name, TEXT, required=True) for name in names)
    folder = written(
        tmp_path,
        Members=Object(fields),
        Closed=Object((Field("a", TEXT, required=False),), extra=None),
        Typed=Object((Field("n", Scalar("integer"), required=False),), extra=TEXT),
        Number=Scalar("number"),
        Tree=Array(Ref("Tree")),
        Odd=Const((None, 1.5, "\u2028")),
        object=Scalar("string", (("minLength", 2), ("pattern", "^a"))),
        Object=AnyValue(),
        Set=Object((Field("a", TEXT, required=False),), extra=None),
        Map=Union((Ref("Book"),), tag="form"),
        Book=Object((Field("form", Const(("book",)), required=True),)),
        Dash=Scalar("string", (("pattern", r"^a\-b$"),)),
        Long=Union((Scalar("integer"), LONG)),
        Pair=Tuple(AnyValue(), (("maxItems", 3),), prefix=(TEXT, Scalar("integer")), least=1, rest=LONG),
        Closed2=Tuple(AnyValue(), prefix=(TEXT,), least=1),
        Cents=Scalar("number", (("multipleOf", 0.01),)),
        Never=Union(()),
        Nested=Object((Field("n", LONG, required=False),), extra=Union((Array(LONG), Scalar("null")))),
    )
    every = json.dumps(dict.fromkeys(names, "x"))
    faults = {
        ("Members", every): None,
        ("Members", "{}"): "Members/__proto__: is missing, must be a string",
        ("Closed", '{"a": "x"}'): None,
        ("Closed", '{"b": "x"}'): "Closed/b: is not a member of the type",
        ("Typed", '{"n": 1, "m": "x"}'): None,
        ("Typed", '{"n": 1, "m": 1}'): "Typed/m: must be a string, not a value of type number",
        ("Odd", '"\\u2028"'): None,
        ("Odd", "false"): 'Odd: must be one of [null,1.5,"\u2028"]',
        ("Tobject", '"a\U0001f600"'): None,
        ("Tobject", '"a"'): "object: breaks the limit minLength 2",
        ("Object", "null"): None,
        ("Set", '{"b": 1}'): "Set/b: is not a member of the type",
        ("Map", '{"form": "book"}'): None,
        ("Dash", '"a-b"'): None,
        ("Dash", '"ab"'): r"Dash: breaks the limit pattern ^a\-b$",
        ("Long", json.dumps("b" * 40)): None,
        ("Pair", '["a"]'): None,
        ("Pair", json.dumps(["a", 1, "b" * 40])): None,
        ("Pair", "[]"): "Pair/0: is missing, must be an item",
        ("Pair", '["a", "b"]'): "Pair/1: must be an integer, not a value of type string",
        ("Pair", json.dumps(["a", 1, "b" * 40, "b" * 40])): "Pair: breaks the limit maxItems 3",
        ("Closed2", '["a", 1]'): "Closed2/1: is not a member of the type",
        ("Cents", "19.99"): None,
        ("Cents", "-4e20"): None,
        ("Cents", "0.001"): "Cents: breaks the limit multipleOf 0.01",
        ("Never", "null"): "Never: no value is possible",
        ("Nested", '{"m": []}'): None,
        ("Number", "1.0"): None,
        ("Number", "1e400"): "Number: must be a number, not a value of type infinite number",
        ("Tree", f"{'[' * 20_000}{']' * 20_000}"): "Tree: is nested too deeply",
    }
    assert verdicts(folder, *faults) == [*faults.values()]


def test_a_required_member_without_a_schema_has_the_schema_of_undeclared_members(tmp_path: Path) -> None:
    counts = {"type": "object", "required": ["n"], "additionalProperties": {"type": "integer"}}
    schema = draft()
    schema["$defs"]["Counts"] = counts
    file = save(tmp_path / "draft.json", schema)
    assert generate("--schema", file, "--revision", "draft", out=tmp_path).returncode == 0
    cases = [("Counts", '{"n": 1}'), ("Counts", '{"n": "x"}')]
    fault = "Counts/n: must be an integer, not a value of type string"
    assert verdicts(tmp_path / "mcp-draft", *cases) == [None, fault]


def test_functions_return_capabilities_with_the_names_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mcp-bindgen.toml").write_text(
        """
        revisions = ["2025-11-25"]
        languages = ["typescript"]

        [[packages]]
        name = "a"
        settings.typescript.names = {ClientCapabilities = "Caps", Tool = "ClientCapabilities"}
        """
    )
    inside("generate", code=0)
    for side, name in {"client": "Caps", "server": "ServerCapabilities"}.items():
        text = Path("a", f"{side}.ts").read_text("utf-8")
        assert f"\nexport function {side}Capabilities(handlers: {side.capitalize()}Handlers): types.{name} {{\n" in text


@pytest.mark.parametrize("seed", range(6))
def test_a_damaged_schema_is_emitted_or_refused(seed: int, tmp_path: Path) -> None:
    file = save(tmp_path / "draft.json", damaged(draft(), Random(seed)))
    done = generate("--schema", file, "--revision", "draft", out=tmp_path)
    assert done.returncode in (0, 2), done.stderr
    assert (tmp_path / "mcp-draft" / "validators.ts").exists() == (done.returncode == 0)


def test_the_page_lists_the_templates() -> None:
    page = (ROOT / "docs" / "how-to" / "typescript.md").read_text("utf-8")
    rows = set(re.findall(r"^\| `([\w.]+jinja)` \|", page, re.MULTILINE))
    assert rows == set(EMITTER.templates), "each template has a row in docs/how-to/typescript.md"


def test_comments_have_no_directives_of_compilers_bundlers_and_html() -> None:
    for words, shown in {
        "@ts-ignore": "@\\ts-ignore",
        "a #__NO_SIDE_EFFECTS__ b": "a #\\__NO_SIDE_EFFECTS__ b",
        "# sourceMappingURL=x": "#\\ sourceMappingURL=x",
        "</SCRIPT> */ <b>": "<\\/SCRIPT> *\\/ <b>",
        "me@example.com #1": "me@example.com #1",
    }.items():
        assert comment(words) == f"/** {shown} */\n"
