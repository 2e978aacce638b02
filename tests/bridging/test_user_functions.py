"""Functions of the user in rules: checks at generation, and the params, direction and outcome of each call."""

from __future__ import annotations

import copy
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen.bridging.chain import LossReport, NotConvertible
from mcp_bindgen.bridging.functions import user_function
from mcp_bindgen.spec import BadInput, Store
from tests.conversion.test_next_revision import user
from tests.harness.bridging import converted
from tests.harness.commands import execute, inside, save
from tests.harness.effort import each
from tests.harness.small_bridges import NEW, OLD, UP, steps, store
from tests.harness.small_schemas import record

MODULE = """
def two(value, context): return {"n": [context.direction, context.source, context.target, context.params, value]}
def refused(value, context): context.refuse()
def lossy(value, context):
    context.record_loss()
    return {"n": []}
def one(value): return value
async def later(value, context): return value
number = 1
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of the user with a module beside the rules."""
    monkeypatch.setenv("MCP_BINDGEN_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / "schema").mkdir()
    (tmp_path / "home" / "schema" / "own.py").write_text(MODULE)
    return tmp_path / "home"


def rule(name: str) -> str:
    return f'{UP}FindBookResult.n = {{ by = "{name}", at = ["FindBookResult"], because = "n is new" }}'


def up(folder: Path, name: str) -> Any:
    before, more = record("", a={"type": "integer"}), {"n": {"type": "array", "items": {}}}
    after = {"FindBookResult": record("n", a={"type": "integer"}, **more)}
    return steps(store(folder / name.partition(":")[2], {"FindBookResult": before}, after, rule(name)))[0]


def test_a_function_gets_value_params_direction_and_revisions(home: Path, tmp_path: Path) -> None:
    conversion, losses = up(tmp_path, "own:two").results["books/find"], LossReport()
    assert conversion.reads_params
    told = ["newer", OLD, NEW, {"title": "x"}, {"a": 1}]
    assert converted(conversion, {"a": 1}, losses.of({"title": "x"})) == {"n": told}
    assert losses.params is None


def test_a_function_refuses_and_records_losses(home: Path, tmp_path: Path) -> None:
    losses = LossReport()
    assert converted(up(tmp_path, "own:lossy").results["books/find"], {}, losses.of({})) == {"n": []}
    assert [*losses.losses] == [("FindBookResult.n", "n is new")]
    with pytest.raises(NotConvertible, match=r"FindBookResult\.n: n is new"):
        converted(up(tmp_path, "own:refused").results["books/find"], {})


@each(
    ("name", "says"),
    [
        ("own:gone", "KeyError: 'gone'"),
        ("own:one", "TypeError: too many positional arguments"),
        ("own:later", "TypeError: it is asynchronous"),
        ("own:number", "TypeError: 1 is not a callable object"),
        ("no_such_module:f", "ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_generation_refuses_a_function_that_cannot_be_called(name: str, says: str, home: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="in a module beside bridges") as caught:
        up(tmp_path, name)
    assert says in caught.value.message
    assert caught.value.pointer == f"/{OLD} -> {NEW}/FindBookResult/n"


@pytest.mark.skipif(os.name != "posix", reason="the system closes the folders of users")
def test_a_module_that_other_users_can_write_to_is_not_imported(home: Path) -> None:
    (home / "schema" / "own.py").chmod(0o666)
    with pytest.raises(ImportError, match="every user can write to"):
        user_function("own:two")
    (home / "schema" / "own.py").chmod(0o600)
    home.chmod(0o755)
    with pytest.raises(ImportError, match="is open to other users"):
        user_function("own:two")


# --- servers and clients --------------------------------------------------------------------------------------

BASIS, NAME = "2026-07-28", "next"

ASKED = """
import json
from mcp_bindgen.bridging import Json, RuleContext

def told(context: RuleContext) -> str:
    if context.params["name"] == "secret":
        context.refuse()
    params = {name: value for name, value in context.params.items() if name != "_meta"}
    return json.dumps([params, context.direction])

def say(value: Json, context: RuleContext) -> Json:
    return {**value, "asked": told(context)}

def unsay(value: Json, context: RuleContext) -> Json:
    value["content"].append({"type": "text", "text": told(context)})
    return value

def shout(value: Json, context: RuleContext) -> Json:
    if value["name"] == "secret":
        return value
    value["name"] = value["name"] + "!" * value.pop("shouts", 0)
    return {**value, "arguments": {"told": told(context)}}
"""

RULES = f"""
["{BASIS} -> {NAME}"]
CallToolResult.asked = {{ by = "asked:say", at = ["CallToolResult"], because = "results tell the question" }}

["{NAME} -> {BASIS}"]
CallToolResult.asked = {{ by = "asked:unsay", at = ["CallToolResult"], because = "results do not tell the question" }}
CallToolRequestParams.shouts = {{ by = "asked:shout", at = ["CallToolRequestParams"], because = "nobody shouts" }}
"""

CONVERSATION = """
import json, os, sys
import anyio
from mcp_bindgen.runtime import ProtocolError, connect, run, serve
from mcp_bindgen.user_bindings import install
install()
from mcp_bindgen import v2026_07_28 as old, vnext as new
from mcp_bindgen.host import Entry
from mcp_bindgen.runtime.transports.memory import pair

def server(package, **more):
    class Echo(package.Server):
        info = package.types.Implementation(name="echo", version="1")
        def call_tool(self, params, ctx):
            text = params.name + (params.arguments or {}).get("told", "")
            return package.types.CallToolResult(content=[package.types.TextContent(text=text)], **more)
    return Echo()

SERVERS = {"old": server(old), "new": server(new, asked="me")}

async def said(client):
    one = await client.call_tool("a", **({"shouts": 2} if isinstance(client, new.Client) else {}))
    try:
        two = (await client.call_tool("secret")).is_error
    except ProtocolError as error:  # the client converts the result itself
        two = str(error)
    return [getattr(one, "asked", None), *(each.text for each in one.content), two]

async def main(how):
    for name, client in (("old", new.Client), ("new", old.Client)):
        if how == "memory":
            ours, theirs = pair()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(serve, theirs, SERVERS[name])
                async with client().connected(ours) as it:
                    print(json.dumps(await said(it)))
        else:
            words = {"command": sys.executable, "args": ["-c", os.environ["CODE"], name], "env": dict(os.environ)}
            async with connect(Entry.read(words), client) as it:
                print(json.dumps(await said(it)))

if sys.argv[1] in SERVERS:
    run(SERVERS[sys.argv.pop(1)])
else:
    anyio.run(main, sys.argv[1])
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of the user with a revision whose results tell the question, and functions for it."""
    folder = tmp_path_factory.mktemp("user")
    definitions = copy.deepcopy(dict(Store().effective(BASIS).definitions))
    definitions["CallToolResult"]["properties"]["asked"] = {"type": "string"}
    definitions["CallToolResult"]["required"].append("asked")
    definitions["CallToolRequestParams"]["properties"]["shouts"] = {"type": "integer"}
    file = save(folder / "next.json", {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions})
    (folder / "home").mkdir(mode=0o700)
    (folder / "home" / "schema").mkdir()
    (folder / "home" / "schema" / "bridges.toml").write_text(RULES, "utf-8")
    (folder / "home" / "schema" / "asked.py").write_text(ASKED, "utf-8")
    with user(folder / "home"):
        inside("schema", "import", NAME, file, "--status", "draft", code=0)
    return folder / "home"


@pytest.mark.full
@pytest.mark.parametrize("how", ["memory", "stdio"])
def test_functions_get_the_params_as_their_sender_sent_them(how: str, imported: Path) -> None:
    words = ("-c", CONVERSATION, how)
    done = execute(sys.executable, *words, CODE=CONVERSATION, MCP_BINDGEN_HOME=str(imported))
    assert done.returncode == 0, done.stderr
    to_old, to_new = '[{"name": "a", "shouts": 2}, "older"]', '[{"name": "a", "shouts": 2}, "newer"]'
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        [to_new, f"a!!{to_old}", "CallToolResult.asked: results tell the question (-32603)"],
        ["me", "a", '[{"name": "a"}, "older"]', True],
    ]
