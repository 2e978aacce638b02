"""Dry run of the next revision: `generate` writes the bridge of a made-up revision, with three lines of rules."""

from __future__ import annotations

import copy
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from mcp_bindgen.spec import Store
from tests.harness.commands import complaint, execute, inside, save
from tests.harness.next_revision import BASIS, add_a_method_and_a_notification
from tests.harness.small_schemas import Schema

NAME = "next"
OLDEST = next(iter(Store().pins))

RULES = f"""
["{BASIS} -> {NAME}"]
ResourceTemplate.uriTemplate = {{ rename = "template", because = "it has a shorter name now" }}
Tool.description = {{ give = "", because = "every tool is described now" }}
"*".content.ResourceLink = {{ by = "link_as_text", because = "there are no links any more" }}
"""

UP, DOWN = f"v2026_07_28_to_v{NAME}.py", f"v{NAME}_to_v2026_07_28.py"

CONVERT = """
import json, sys
from mcp_bindgen.bridging.chain import chain
from mcp_bindgen.bridging.chain import LossReport, NotConvertible
from mcp_bindgen.user_bindings import install

install()

def made(source, target, method, value):
    conversion = chain(source, target).results(method)
    try:
        return value if conversion is None else conversion.convert(value, LossReport())
    except NotConvertible as error:
        return error.place

print(json.dumps([made(*each) for each in json.load(sys.stdin)]))
"""


def schema() -> Schema:
    """Return the newest revision with an added method, a renamed field, a field made required, and a smaller union."""
    definitions: Schema = copy.deepcopy(dict(Store().effective(BASIS).definitions))
    add_a_method_and_a_notification(definitions)
    template = definitions["ResourceTemplate"]
    template["properties"]["template"] = template["properties"].pop("uriTemplate")
    template["required"] = sorted("template" if name == "uriTemplate" else name for name in template["required"])
    definitions["Tool"]["required"] = sorted([*definitions["Tool"]["required"], "description"])
    union = definitions["ContentBlock"]["anyOf"]
    union.remove({"$ref": "#/$defs/ResourceLink"})
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}


@contextmanager
def user(folder: Path) -> Iterator[None]:
    """Set up an installation (no checkout) with this user folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MCP_BINDGEN_HOME", str(folder))
        patch.setattr("mcp_bindgen.emit.python.installation.is_checkout", lambda: False)
        yield


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a user folder into which the revision was imported."""
    folder = tmp_path_factory.mktemp("next")
    with user(folder / "home"):
        done = inside("schema", "import", NAME, save(folder / "next.json", schema()))
    assert done.returncode == 0, done.stderr
    return folder / "home"


@pytest.fixture
def home(imported: Path, tmp_path: Path) -> Iterator[Path]:
    """Yield a copy of the user folder, which the test may change."""
    shutil.copytree(imported, tmp_path / "home")
    with user(tmp_path / "home"):
        yield tmp_path / "home"


def steps(home: Path) -> set[str]:
    return {path.name for path in (home / "generated" / "mcp_bindgen" / "bridges").glob("*.py")}


def converted(home: Path, *payloads: tuple[str, str, str, Any]) -> list[Any]:
    """Return converted payloads; a refused payload becomes the place of its refusal."""
    done = execute(sys.executable, "-c", CONVERT, stdin=json.dumps(payloads), MCP_BINDGEN_HOME=str(home))
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


def valid(definition: str, value: Any) -> bool:
    return jsonschema_rs.validator_for({**schema(), "$ref": f"#/$defs/{definition}"}).is_valid(value)


def fields(**more: Any) -> dict[str, Any]:
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **more}


TEMPLATES = fields(resourceTemplates=[{"name": "a", "uriTemplate": "a:{b}"}])
TOOLS = fields(tools=[{"name": "a", "inputSchema": {"type": "object"}}])
LINKS = {"resultType": "complete", "content": [{"type": "resource_link", "name": "a", "uri": "a:b"}]}


HARD = [
    ("resources/templates/list", TEMPLATES, "ResourceTemplate.template"),
    ("tools/list", TOOLS, "Tool.description"),
    ("tools/call", LINKS, "CallToolResult.content.ResourceLink"),
]


@pytest.mark.full
def test_an_imported_revision_has_steps_that_refuse_changes_without_a_rule(imported: Path) -> None:
    assert steps(imported) == {UP, DOWN}
    refused = converted(imported, *((BASIS, NAME, method, value) for method, value, _ in HARD))
    assert refused == [place for *_, place in HARD]
    down = (imported / "generated" / "mcp_bindgen" / "bridges" / DOWN).read_text("utf-8")
    assert '"tools/preview": "MCP 2026-07-28 has no tools/preview"' in down
    with user(imported):
        steps_as_json = json.loads(inside("bridges", "--json").stdout)
    (step,) = (one for one in steps_as_json if one["step"] == f"{NAME} -> {BASIS}")
    titles = {place: one["title"] for one in step["sections"] for entry in one["entries"] for place in entry["places"]}
    assert titles["tools/preview"] == "Refused"


@pytest.mark.full
@pytest.mark.parametrize(("added", "refused"), [({"enum": [None]}, [None]), ({"not": {}}, [None, {}])])
def test_values_of_an_alternative_that_the_other_revision_lacks_are_refused(
    added: Schema, refused: list[Any], tmp_path: Path
) -> None:
    changed = schema()
    changed["$defs"]["ElicitResult"]["properties"]["content"]["additionalProperties"]["anyOf"].append(added)
    with user(tmp_path / "home"):
        done = inside("schema", "import", NAME, save(tmp_path / "next.json", changed))
        assert done.returncode == 0, done.stderr
        results = [{"action": "accept", "content": {"a": value}} for value in ["text", 1, True, ["x"], *refused]]
        found = converted(tmp_path / "home", *((NAME, BASIS, "elicitation/create", one) for one in results))
    assert found[: -len(refused)] == results[: -len(refused)]
    assert all(one.startswith("ElicitResult.content") for one in found[-len(refused) :])


@pytest.mark.full
def test_three_rules_complete_the_bridge_of_the_revision(home: Path) -> None:
    wanted = inside("bridges", "--missing").stdout
    assert f'["{BASIS} -> {NAME}"]\n' in wanted
    assert 'Tool.description = { do = "refuse", because = "MCP next wants it" }\n' in wanted
    assert len(RULES.strip().splitlines()) == 4  # the name of the step, and three rules
    suggested = f'ResourceTemplate.uriTemplate = {{ rename = "template", because = "MCP {NAME} wants it" }}'
    assert f"#   or: {suggested}\n" in wanted
    assert 'a value after:  {"annotations": ' in wanted
    file = home / "schema" / "bridges.toml"
    kept = f'# mine\n["{BASIS} -> {NAME}"]  # up\nTool.description = {{ give = "", because = "kept" }} # mine, too'
    file.write_text(kept, "utf-8")
    inside("bridges", "--missing", "--append", code=0)
    lines = file.read_text("utf-8").splitlines()
    assert [*lines[:2], *(line for line in lines if "Tool.description =" in line)] == kept.splitlines()
    assert inside("generate", NAME).stderr == ""
    assert inside("bridges", "--missing", "--append").stderr == "no rule is missing\n"
    table = f'["{BASIS} -> {NAME}".ResourceTemplate]\nname = {{ do = "keep", because = "a table of its own" }}\n'
    file.write_text(f'["{BASIS} -> {NAME}"]\n{table}', "utf-8")
    before = file.read_text("utf-8")
    assert f"{file}: has other tables of the step; leave out --append" in complaint("bridges", "--missing", "--append")
    assert file.read_text("utf-8") == before
    file.write_text(RULES, "utf-8")
    assert inside("generate", NAME).stderr == ""
    assert inside("bridges", "--missing").stdout == ""
    old = {"content": [{"type": "text", "text": "a"}]}
    templates, tools, called, back, up, down = converted(
        home,
        *((BASIS, NAME, method, value) for method, value, _ in HARD),
        (NAME, BASIS, "resources/templates/list", fields(resourceTemplates=[{"name": "a", "template": "a:{b}"}])),
        (OLDEST, NAME, "tools/call", old),
        (NAME, OLDEST, "tools/call", {"resultType": "complete", **old}),
    )
    assert templates["resourceTemplates"] == [{"name": "a", "template": "a:{b}"}]
    assert valid("ListResourceTemplatesResult", templates)
    assert tools["tools"][0]["description"] == ""
    assert valid("ListToolsResult", tools)
    assert called["content"] == [{"type": "text", "text": "a\na:b"}]
    assert valid("CallToolResult", called)
    assert back == TEMPLATES
    assert valid("CallToolResult", up)
    assert down == old


@pytest.mark.full
def test_removing_a_revision_removes_its_steps(home: Path) -> None:
    assert inside("schema", "remove", NAME).returncode == 0
    assert steps(home) == set()


@pytest.mark.full
def test_a_rule_gives_a_list_or_a_table(home: Path) -> None:
    for given in ("[]", "{ a = [1] }"):
        (home / "schema" / "bridges.toml").write_text(RULES.replace('give = ""', f"give = {given}"), "utf-8")
        inside("generate", NAME, code=0)


@pytest.mark.full
def test_a_rule_that_matches_no_difference_is_reported(home: Path) -> None:
    (home / "schema" / "bridges.toml").write_text(RULES.replace("Tool.description", "Tool.prescription"), "utf-8")
    done = inside("generate", NAME)
    assert done.returncode == 0  # a draft of the user only causes a warning
    assert f"{BASIS} -> {NAME}: Tool.prescription matches no difference; remove the rule\n" in done.stderr
    assert "1 differences without a rule" in done.stderr


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="the system closes the folders of users")
def test_steps_writable_by_other_users_are_not_imported(home: Path) -> None:
    (home / "generated" / "mcp_bindgen" / "bridges" / UP).chmod(0o666)
    payloads = json.dumps([(BASIS, NAME, "tools/call", LINKS)])
    done = execute(sys.executable, "-c", CONVERT, stdin=payloads, MCP_BINDGEN_HOME=str(home))
    assert "every user can write to" in done.stderr
    assert done.returncode == 1
