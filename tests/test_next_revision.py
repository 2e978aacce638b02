"""Dry run of the next release: an unknown revision is imported, generated and spoken, without code changes."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen.ir import build
from mcp_bindgen.spec import Store, Upstream
from tests.conversion.test_next_revision import user
from tests.harness import proposal
from tests.harness.commands import ROOT, Done, execute, inside, save
from tests.harness.next_revision import ATTEMPT, BASIS, EXTENSIONS, FACTS, NAME, TRACE, next_revision, without

CONVERSATION = """
import json, os, sys
from contextlib import AsyncExitStack
import anyio
from acme.next import Client, REVISION, Server, types as mcp
from mcp_bindgen import v2026_07_28 as before
from mcp_bindgen.host import Entry
from mcp_bindgen.runtime import connect, run
from mcp_bindgen.http import HttpApp
from mcp_bindgen.testing import connected

class Next(Server):
    info = mcp.Implementation(name="next", version="1")
    def list_tools(self, params, ctx):
        return mcp.ListToolsResult(tools=[mcp.Tool(name="add", input_schema=mcp.ToolInputSchema())])
    async def call_tool(self, params, ctx):
        form = mcp.ElicitRequestFormParamsRequestedSchema(properties={})
        answer = await ctx.ask_params("sure", mcp.ElicitRequestFormParams(message="Sure?", requested_schema=form))
        await ctx.notify_tool_retired("subtract")
        return mcp.CallToolResult(content=[mcp.TextContent(text=answer.action)])
    def preview_tool(self, params, ctx):
        return mcp.PreviewToolResult(summary=f"{params.name}, attempt {params.meta.attempt}")
    def list_resources(self, params, ctx):
        return mcp.ListResourcesResult(resources=[])
    def fetch_resource(self, params, ctx):
        return {"contents": [{"uri": params.uri, "text": "fetched"}]}
    def list_templates(self, params, ctx):
        return mcp.ListTemplatesResult(resource_templates=[], advice="hurry")

class Before(before.Server):
    info = before.types.Implementation(name="before", version="1")
    def list_resources(self, params, ctx):
        return before.types.ListResourcesResult(resources=[])
    def read_resource(self, params, ctx):
        contents = before.types.TextResourceContents(uri=params.uri, text="read")
        return before.types.ReadResourceResult(contents=[contents])

class Asked(Client):
    def __init__(self):
        self.retired = []
    def on_elicit(self, params, ctx):
        return mcp.ElicitResult(action="accept")
    async def on_tool_retired(self, params, ctx):
        self.retired.append(params.name)

async def said(client):
    if client.revision != REVISION.name:
        return [client.revision, (await client.read_resource("x:y")).contents[0].text]
    preview, templates = await client.preview_tool("add"), await client.list_templates()
    called, fetched = await client.call_tool("add"), await client.fetch_resource("x:y")
    return {
        "revision": client.revision,
        "stands alone": REVISION.era.is_stateless,
        "added": preview.summary,
        "asked": called.content[0].text,
        "told": client.retired,
        "renamed": fetched.contents[0].text,
        "moved": [templates.advice, client.server_capabilities["templates"]],
        "everywhere": [preview.advice, fetched.advice],
        "declared": client.server_capabilities["tools"],
    }

async def in_memory():
    for client, servers in ((Asked(), [Next()]), (before.Client(), [Next(), Before()]), (Asked(), [Next(), Before()])):
        async with connected(client, *servers) as it:
            yield await said(it)

async def at(target):
    for clients in ([Asked], [before.Client], [before.Client, Asked]):
        async with connect(target, *clients) as client:
            yield await said(client)

async def main(how):
    if how == "memory":
        found = [one async for one in in_memory()]
    elif how == "stdio":
        words = {"command": sys.executable, "args": ["-c", os.environ["CODE"], "serve"], "env": dict(os.environ)}
        found = [one async for one in at(Entry.read(words))]
    else:
        import socket, uvicorn
        with socket.create_server(("127.0.0.1", 0)) as listener:
            app = HttpApp(Next(), Before())
            config = uvicorn.Config(app, log_level="error", lifespan="on", timeout_keep_alive=60)
            server = uvicorn.Server(config)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(server.serve, [listener])
                found = [one async for one in at(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")]
                server.should_exit = True
    print(json.dumps(found))

if sys.argv[1:] == ["serve"]:
    del sys.argv[1]
    run(Next(), Before())
else:
    anyio.run(main, sys.argv[1])
"""

NEW = {
    "revision": NAME,
    "stands alone": True,
    "added": "add, attempt 1",
    "asked": "accept",
    "told": ["subtract"],
    "renamed": "fetched",
    "moved": ["hurry", {}],
    "everywhere": ["none", "none"],
    "declared": {"listChanged": True, "preview": True},
}
OLD = [BASIS, "read"]

CODE = """
from mcp_bindgen.v2026_07_28 import Client, Context, Server
from mcp_bindgen.v2026_07_28 import types as mcp


class Books(Server):
    async def read_resource(self, params: mcp.ReadResourceRequestParams, ctx: Context) -> mcp.ReadResourceResult:
        await ctx.log("info", params.uri)
        return mcp.ReadResourceResult(contents=[])


class Reader(Client):
    async def on_create_message(self, params: mcp.CreateMessageRequestParams, ctx: Context) -> mcp.CreateMessageResult:
        raise NotImplementedError


async def read(client: Client) -> None:
    await client.read_resource("x:y")
    await client.list_tools()
    print(getattr(client, "logger", None))  # also a member of a class that is gone
"""


@dataclass(frozen=True)
class DryRun:
    """Folder with the results of the commands, and their output."""

    folder: Path
    first: Done
    stubs: str
    second: Done
    generated: Done

    @property
    def schemas(self) -> tuple[object, ...]:
        return "--folder", self.folder / "schema"


def import_into(folder: Path, schema: Any, *more: object) -> tuple[object, ...]:
    """Import a schema beside the revision that it is based on; return the options that name the folder."""
    schemas = folder / "schema"
    if not schemas.exists():
        shutil.copytree(ROOT / "schema", schemas)
        for revision in Store(schemas).pins.keys() - {BASIS}:
            Store(schemas).remove(revision)
    here = ("--folder", schemas)
    file = save(folder / "next.json", schema)
    done = inside("schema", "import", NAME, file, "--status", "draft", *more, *here)
    assert done.returncode == 0, done.stderr
    return here


@pytest.fixture(scope="session")
def dry_run(tmp_path_factory: pytest.TempPathFactory) -> DryRun:
    """Follow docs/tutorials/new-revision.md: import, list missing facts, write them, generate."""
    folder = tmp_path_factory.mktemp("dry-run")
    here = import_into(folder, next_revision())
    first = inside("schema", "status", *here)
    stubs = inside("schema", "status", "--stubs", *here).stdout

    with (folder / "schema" / "docs.toml").open("a", encoding="utf-8") as docs:
        docs.write("\n" + re.sub(r'= ""', '= "Words of a person."', stubs))
    (folder / "facts.toml").write_text(FACTS, "utf-8")
    import_into(folder, next_revision(), "--semantics", folder / "facts.toml")
    second = inside("schema", "status", *here)
    generated = inside("generate", NAME, *here, "--out", folder / "out", "--package", "acme.next")
    assert generated.returncode == 0, generated.stderr

    home = Store(folder / "home" / "schema")  # the schema checks of the conversation read this folder
    home.root.mkdir(parents=True)
    home.add(NAME, Upstream(folder / "next.json", status="draft"), prose=True)
    return DryRun(folder, first, stubs, second, generated)


def sections(status: str) -> dict[str, list[str]]:
    """Return the lists below the table of `schema status`: first words of the heading -> items."""
    found: dict[str, list[str]] = {}
    # after an empty line comes the table of extensions
    for line in status.partition(f"\n{NAME}:\n")[2].partition("\n\n")[0].splitlines():
        if line.startswith("    "):
            found[list(found)[-1]].append(line.strip())
        else:
            found[" ".join(line.rstrip(":").split()[:3])] = []
    return found


@pytest.mark.full
def test_status_lists_missing_descriptions_and_outdated_facts(dry_run: DryRun) -> None:
    assert dry_run.first.returncode == 1
    open_ = sections(dry_run.first.stdout)
    protocol = build(Store(dry_run.folder / "schema").effective(NAME))
    assert open_["definitions without words"] == sorted(protocol.definitions.keys() - Store().docs.keys())
    definitions, fields = {*open_["definitions without words"]}, {*open_["fields without words"]}
    assert {"PreviewToolRequest", "FetchResourceResult", "ToolRetiredNotification"} < definitions
    assert {f"RequestMetaObject.{ATTEMPT}", f"RequestMetaObject.{TRACE}", "ServerCapabilities.templates"} < fields
    assert open_["new members that"] == [f"_meta.{ATTEMPT}", "advice"]
    gone = open_["facts about what"]
    assert {'[names] "resources/read"', '[arguments] "resources/templates/list"'} < {*gone}
    assert '[utilities] "log": notifications/message' in gone
    assert '[cache_invalidations] "notifications/resources/updated": resources/read' in gone
    assert not [line for line in gone if "tools/call" in line or "prompts" in line]


@pytest.mark.full
def test_status_lists_methods_without_a_capability(tmp_path: Path) -> None:
    text = json.dumps(next_revision()).replace("tools/preview", "previews/tool").replace("tools/retired", "retired")
    here = import_into(tmp_path, json.loads(text))
    found = sections(inside("schema", "status", "--revision", NAME, *here).stdout)
    assert found["new methods for"] == ["notifications/retired", "previews/tool"]


def test_status_lists_all_requests_without_a_result(tmp_path: Path) -> None:
    schema = next_revision()
    for stem in ("PreviewTool", "FetchResource"):
        del schema["$defs"][f"{stem}ResultResponse"]
    text = json.dumps(schema).replace("PreviewToolResult", "Preview").replace("FetchResourceResult", "Fetched")
    here = import_into(tmp_path, json.loads(text))
    done = inside("schema", "status", "--revision", NAME, *here)
    assert done.returncode == 1
    fixes = re.findall(r"nothing says what answers '([^']+)'", done.stdout)
    assert fixes == ["resources/fetch", "tools/preview"]


@pytest.mark.full
def test_stubs_are_entries_for_exactly_the_missing_descriptions(dry_run: DryRun) -> None:
    open_ = sections(dry_run.first.stdout)
    asked: set[str] = set()
    for name, table in tomllib.loads(dry_run.stubs).items():
        for part in (table, *table.get("since", {}).values()):
            asked |= {name} if "doc" in part else set()
            asked |= {f"{name}.{wire}" for wire in part.get("fields", {})}
    assert asked == {*open_["definitions without words"], *open_["fields without words"]}
    assert 'doc = ""  # request tools/preview, sent by: client' in dry_run.stubs
    assert f'"{ATTEMPT}" = ""  # integer (minimum 1), required' in dry_run.stubs


@pytest.mark.full
def test_status_passes_after_descriptions_and_facts_are_written(dry_run: DryRun) -> None:
    assert (dry_run.second.returncode, dry_run.second.stderr) == (0, "")
    assert list(sections(dry_run.second.stdout)) == ["facts about what"]  # facts about older revisions
    assert re.match(rf"{NAME}  165 definitions  20 methods  \d+ files ", dry_run.generated.stdout)


@pytest.mark.full
def test_diff_and_history_know_renamed_methods_by_both_names(dry_run: DryRun) -> None:
    done = inside("diff", BASIS, NAME, "--format", "json", *dry_run.schemas)
    assert done.returncode == 0, done.stderr
    (comparison,) = json.loads(done.stdout)["comparisons"]
    found = [one for finding in comparison["findings"] for one in finding["places"] or [finding]]
    hints = {one["subject"]: one["hint"] for one in found}
    assert hints["client->server request resources/read"] == "It is called `resources/fetch` now."
    assert hints["client->server request templates/list"] == "It was called `resources/templates/list`."
    assert {"client->server request tools/preview", "server->client request sampling/createMessage"} < hints.keys()
    traced = json.loads(inside("history", "resources/fetch", "--json", *dry_run.schemas).stdout)
    events = [(event["kind"], event["name"]) for event in traced["events"]]
    assert events == [("since", "resources/read"), ("renamed", "resources/fetch")]


@pytest.mark.full
def test_migrate_finds_code_that_has_to_change(dry_run: DryRun, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(CODE, "utf-8")
    done = inside("migrate", BASIS, NAME, tmp_path, "--format", "json", *dry_run.schemas)
    assert done.returncode == 1, done.stderr
    found = {(use["kind"], use["name"], use["hint"]) for use in json.loads(done.stdout)["uses"]}
    called = "It is called `resources/fetch` now."
    assert {
        ("gone", "Server.read_resource", f"Leave the handler out: no client sends it in {NAME}. {called}"),
        ("gone", "Client.read_resource", f"Leave it out: {NAME} has no such message. {called}"),
        ("renamed", "types.ReadResourceResult", "Use `types.FetchResourceResult`."),
        ("gone", "Client.on_create_message", f"Leave the handler out: no server sends it in {NAME}."),
    } < found
    assert ("gone", "Context.log") in {(kind, name) for kind, name, _ in found}
    assert not [name for _, name, _ in found if "list_tools" in name or "logger" in name]


def converse(dry_run: DryRun, how: str) -> list[Any]:
    path, home = str(dry_run.folder / "out"), str(dry_run.folder / "home")
    words = ("-W", "error", "-c", CONVERSATION, how)
    done = execute(sys.executable, *words, CODE=CONVERSATION, PYTHONPATH=path, MCP_BINDGEN_HOME=home)
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


@pytest.mark.full
def test_the_new_revision_works_in_memory_with_valid_messages(dry_run: DryRun) -> None:
    assert converse(dry_run, "memory") == [NEW, OLD, NEW]


@pytest.mark.full
@pytest.mark.parametrize("how", ["stdio", "http"])
def test_the_draft_works_over_each_transport_and_a_released_revision_is_preferred(dry_run: DryRun, how: str) -> None:
    assert converse(dry_run, how) == [NEW, OLD, OLD]


# --- each part of the core may become an extension ------------------------------------------------------------

WHAT_IS_LEFT = """
import anyio
from acme.left import Client, Server, types as mcp
from mcp_bindgen.runtime import serve
from mcp_bindgen.runtime.transports.memory import pair

FIRST = {"list_tools": ("ListToolsResult", {"tools": []}), "list_prompts": ("ListPromptsResult", {"prompts": []}),
         "list_resources": ("ListResourcesResult", {"resources": []}), "call_tool": ("CallToolResult", {"content": []})}

def answering(result, members):
    async def answer(self, params, ctx):
        await ctx.progress(1)
        return getattr(mcp, result)(**members)
    return answer

handlers = {name: answering(*first) for name, first in FIRST.items() if hasattr(Server, name)}
server = type("S", (Server,), {**handlers, "info": mcp.Implementation(name="left", version="1")})()

async def main():
    ours, theirs = pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, theirs, server)
        async with Client().connected(ours) as client:
            for name in handlers:
                await (client.call_tool("x") if name == "call_tool" else getattr(client, name)())
            print(*handlers)

anyio.run(main)
"""


@pytest.mark.full
@pytest.mark.parametrize("extension", EXTENSIONS)
def test_core_works_without_a_part_that_became_an_extension(extension: str, tmp_path: Path) -> None:
    file = save(tmp_path / "left.json", without(extension))
    out = ("--out", tmp_path, "--package", "acme.left")
    done = inside("generate", "--schema", file, "--revision", "left", *out)
    assert done.returncode == 0, done.stderr
    spoken = execute(sys.executable, "-W", "error", "-c", WHAT_IS_LEFT, PYTHONPATH=str(tmp_path))
    assert spoken.returncode == 0, spoken.stderr
    features = {"tools": {"list_tools", "call_tool"}, "prompts": {"list_prompts"}, "resources": {"list_resources"}}
    every = {name for names in features.values() for name in names}
    assert set(spoken.stdout.split()) == every - features.get(extension, set())


# --- one server, clients of both revisions --------------------------------------------------------------------

SIDES = """
import json, os, socket, sys
import anyio
from mcp_bindgen.runtime import ProtocolError, connect, run
from mcp_bindgen.user_bindings import install

install()
from mcp_bindgen import v2026_07_28, v2026_12_01
from mcp_bindgen.http import HttpApp
from mcp_bindgen.testing import connected

mcp, new = v2026_07_28.types, v2026_12_01.types

class Old(v2026_07_28.Server):
    info = mcp.Implementation(name="old", version="1")
    def list_tools(self, params, ctx):
        known = mcp.ToolOutputSchema(type="object")
        silent = mcp.Tool(name="silent", input_schema=mcp.ToolInputSchema())
        sky = mcp.Tool(name="sky", input_schema=mcp.ToolInputSchema(), output_schema=known)
        return mcp.ListToolsResult(tools=[sky, silent])
    def call_tool(self, params, ctx):
        return mcp.CallToolResult(content=[mcp.TextContent(text="sun")], structured_content={"sky": "sun"})
    def list_prompts(self, params, ctx):
        return mcp.ListPromptsResult(prompts=[mcp.Prompt(name="a")])
    def list_resources(self, params, ctx):
        return mcp.ListResourcesResult(resources=[mcp.Resource(name="a", uri="a:b", size=3)])
    def read_resource(self, params, ctx):
        return mcp.ReadResourceResult(contents=[mcp.TextResourceContents(uri=params.uri, text="read")])
    def complete(self, params, ctx):
        return mcp.CompleteResult(completion=mcp.CompleteResultCompletion(values=[params.argument.value + "..."]))

class New(v2026_12_01.Server):
    info = new.Implementation(name="new", version="1")
    def list_tools(self, params, ctx):
        known = new.StructuredToolResultVariantSchema(type="object")
        content = new.ContentToolResultVariant(audience="user")
        variants = [content, new.StructuredToolResultVariant(audience="programmatic", schema_=known)]
        sky, silent = ({"name": name, "input_schema": new.ToolInputSchema()} for name in ("sky", "silent"))
        tools = [new.Tool(**sky, output_variants=variants), new.Tool(**silent, output_variants=[content])]
        return new.ListToolsResult(tools=tools)
    def call_tool(self, params, ctx):
        content = [new.TextContent(text="rain"), new.TableContent(type="table", rows=[["a", "b"], ["c"]])]
        outputs = [
            new.ContentToolResultOutput(audience="user", content=content),
            new.StructuredToolResultOutput(audience="programmatic", structured_content={"sky": "rain"}),
        ]
        wanted = [one.format for one in params.requested_outputs or ()]
        return new.CallToolResult(outputs=[one for one in outputs if not wanted or one.format in wanted])
    def list_prompts(self, params, ctx):
        return new.ListPromptsResult(prompts=[new.Prompt(name="a", description="b")])
    def list_resources(self, params, ctx):
        details = new.ResourceDetails(size=3)
        return new.ListResourcesResult(resources=[new.Resource(name="a", uri="a:b", details=details)])
    def fetch_resource(self, params, ctx):
        return new.FetchResourceResult(contents=[new.TextResourceContents(uri=params.uri, text="fetched")])
    def complete(self, params, ctx):
        return new.CompleteResult(completion=new.CompleteResultCompletion(values=[params.argument.value + "..."]))

def wire(value):
    found = value.model_dump(mode="json", by_alias=True)
    found.pop("_meta", None)
    return found

async def completed(client, types, text):
    try:
        argument = {"name": "b", "value": text}
        return (await client.complete(types.PromptReference(name="a"), argument)).completion.values[0]
    except ProtocolError as error:
        return error.message

async def said(client):
    is_new = client.revision == v2026_12_01.REVISION.name
    types = new if is_new else mcp
    tools = (await client.list_tools()).tools
    read = client.fetch_resource if is_new else client.read_resource
    found = {
        "revision": client.revision,
        "tools": [wire(tool).get("outputVariants" if is_new else "outputSchema") for tool in tools],
        "called": wire(await client.call_tool("sky")),
        "described": (await client.list_prompts()).prompts[0].description,
        "resource": wire((await client.list_resources()).resources[0]),
        "read": (await read("a:b")).contents[0].text,
        "completed": [await completed(client, types, "short")],
    }
    if is_new:
        wanted = new.ToolResultOutputSelector(audience="programmatic", format="structured")
        found["requested"] = wire(await client.call_tool("sky", requested_outputs=[wanted]))["outputs"]
    else:
        found["completed"].append(await completed(client, types, "LONG"))
    return found

async def conversations(server, how):
    clients = v2026_07_28.Client, v2026_12_01.Client
    if how == "memory":
        for client in clients:
            async with connected(client(), server()) as it:
                yield await said(it)
    elif how == "stdio":
        for client in clients:
            async with connect([sys.executable, "-W", "error", sys.argv[0], "serve", server.__name__], client) as it:
                yield await said(it)
    else:
        import uvicorn
        for revisions in (None, [server.revision]):  # the server converts, the client converts
            with socket.create_server(("127.0.0.1", 0)) as listener:
                config = uvicorn.Config(HttpApp(server(), revisions=revisions), log_level="error", lifespan="on")
                serving = uvicorn.Server(config)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(serving.serve, [listener])
                    for client in clients:
                        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
                        async with client.connect(url) as it:
                            yield await said(it)
                    serving.should_exit = True

async def main(how):
    print(json.dumps([[one async for one in conversations(server, how)] for server in (Old, New)]))

if sys.argv[1] == "serve":
    _, _, name = sys.argv
    del sys.argv[1:]
    run({"Old": Old, "New": New}[name]())
else:
    anyio.run(main, sys.argv[1])
"""

STRUCTURED = {"format": "structured", "audience": "programmatic"}
CONTENT = {"format": "content", "audience": "user"}
SCHEMA = {"type": "object"}
LONG = "x" * (proposal.MAX_TEXT + 1)


def seen(server: str, client: str) -> dict[str, Any]:
    """Return what a client of a revision sees of a server of a revision."""
    is_new, is_new_client = server == proposal.NEW, client == proposal.NEW
    sky = "rain" if is_new else "sun"
    content: list[Any] = [{"type": "text", "text": sky}]
    if is_new:
        table = {"type": "table", "rows": [["a", "b"], ["c"]]}
        content.append(table if is_new_client else {"type": "text", "text": "a b\nc"})
    long = f"CompleteRequestParamsArgument.value: {proposal.TOO_LONG} (at /argument/value)" if is_new else f"{LONG}..."
    structured, resource = {"structuredContent": {"sky": sky}}, {"name": "a", "uri": "a:b"}
    found = {"revision": client, "read": "fetched" if is_new else "read", "completed": ["short..."]}
    if not is_new_client:
        return found | {
            "tools": [SCHEMA, None],
            "called": {"resultType": "complete", "content": content, **structured},
            "described": "b" if is_new else None,
            "resource": {**resource, "size": 3},
            "completed": ["short...", long],
        }
    outputs = [{**CONTENT, "content": content}, {**STRUCTURED, **structured}]
    return found | {
        "tools": [[CONTENT, {**STRUCTURED, "schema": SCHEMA}], [CONTENT]],
        "called": {"resultType": "complete", "outputs": outputs},
        "described": "b" if is_new else "",
        "resource": {**resource, "details": {"size": 3}},
        "requested": outputs[1:],
    }


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a user folder with the revision of the proposal, the bridges to it, and a program that talks over them."""
    folder = tmp_path_factory.mktemp("both")
    home = folder / "home"
    with user(home):
        file = save(folder / "proposal.json", proposal.schema())
        inside("schema", "import", proposal.NEW, file, code=0)
        for name, text in proposal.rules().items():
            (home / "schema" / name).write_text(text, "utf-8")
        done = inside("generate", proposal.NEW, code=0)
        assert done.stderr == ""
        assert inside("bridges", "--missing").stdout == ""
    (folder / "sides.py").write_text(SIDES.replace("LONG", LONG), "utf-8")
    return folder


@pytest.mark.full
@pytest.mark.parametrize("how", ["memory", "stdio", "http"])
def test_servers_and_clients_of_both_revisions_understand_each_other(both: Path, how: str) -> None:
    home = str(both / "home")
    done = execute(sys.executable, "-W", "error", both / "sides.py", how, MCP_BINDGEN_HOME=home)
    assert done.returncode == 0, done.stderr
    clients = [proposal.OLD, proposal.NEW] * (2 if how == "http" else 1)
    expected = [[seen(server, client) for client in clients] for server in (proposal.OLD, proposal.NEW)]
    assert json.loads(done.stdout) == expected
