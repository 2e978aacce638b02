"""Dispatching, calling, lazy loading, and the values that models accept and write."""

from __future__ import annotations

import ast
import asyncio
import copy
import inspect
import json
import math
import pickle
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, cast

import pytest
from pydantic import TypeAdapter, ValidationError

import mcp_bindgen.v2026_07_28 as stateless_package
from mcp_bindgen import runtime
from mcp_bindgen.runtime import (
    Boolean,
    Dispatcher,
    Integer,
    InvalidParams,
    Json,
    MethodNotFound,
    Model,
    Notification,
    Nullable,
    Number,
    ProtocolError,
    RequestMethod,
    UnexpectedAnswer,
)
from mcp_bindgen.runtime.model.base import wire_name
from mcp_bindgen.runtime.protocol import errors
from mcp_bindgen.runtime.protocol import methods as lifecycle
from mcp_bindgen.runtime.protocol.request_scope import RequestScope
from mcp_bindgen.runtime.protocol.routing import Route
from mcp_bindgen.runtime.protocol.stateless import UNSUPPORTED
from mcp_bindgen.runtime.session.context import Caller
from mcp_bindgen.runtime.session.stateless_server import MISSING
from mcp_bindgen.spec import Store
from mcp_bindgen.v2025_11_25 import REVISION, Client, Context, Server, dispatcher, methods
from mcp_bindgen.v2025_11_25 import types as mcp
from mcp_bindgen.v2026_07_28 import Client as StatelessClient
from mcp_bindgen.v2026_07_28 import errors as stateless_errors
from mcp_bindgen.v2026_07_28 import methods as stateless_methods
from mcp_bindgen.v2026_07_28 import types as stateless
from tests.harness import meta_keys
from tests.harness.checked_connections import dispatch
from tests.harness.effort import each

REVISIONS = ["v2024_11_05", "v2025_03_26", "v2025_06_18", "v2025_11_25", "v2026_07_28"]
LIFECYCLE: set[str] = set(Store().semantics["lifecycle"])
BIG = 2**53 + 1
NOT_FINITE = [math.nan, math.inf, -math.inf]
METADATA: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
EMPTY_FORM: dict[str, Any] = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}

every_revision = each("revision", REVISIONS)


class FakeLink(runtime.Link):
    """Link that answers every request with the same answer, and records the messages."""

    def __init__(self, answer: Any = None, metadata: Mapping[str, Any] | None = None) -> None:
        self.answer, self.meta, self.introductions = answer, metadata or {}, 0
        self.lasting: dict[str, Any] = {}
        self.sent: list[tuple[str, Any]] = []

    async def request(self, method: Any, params: Any, options: object = None, *, related: object = None) -> Any:
        self.keep(method, params)
        return self.answer(params) if callable(self.answer) else self.answer

    async def notify(self, method: Any, params: Any, *, related: object = None) -> None:
        self.keep(method, params)

    def keep(self, method: RequestMethod[Any, Any, Any] | Notification[Any], params: object) -> None:
        self.sent.append((method.name, json.loads(TypeAdapter(method.params).dump_json(params))))


C = TypeVar("C", bound=runtime.Client)


def linked(client: type[C], link: FakeLink) -> C:
    """Return a client that is connected through a `FakeLink`."""
    made = client()
    made.link, made.negotiated = cast(Any, link), link.negotiated
    return made


class Echo(Server):
    """Server with a coroutine, a plain function and a notification."""

    info = mcp.Implementation(name="echo", version="1")
    heard: ClassVar[list[object]] = []

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: runtime.Context) -> mcp.CallToolResult:
        return mcp.CallToolResult(content=[mcp.TextContent(text=params.name)], structured_content=params.arguments)

    def ping(self, params: mcp.RequestParams, ctx: Context) -> mcp.EmptyResult:
        self.heard.append((params, ctx))
        return mcp.Result(meta={"pong": True})

    async def complete(self, params: mcp.CompleteRequestParams, ctx: Context) -> mcp.CompleteResult:
        raise NotImplementedError

    def on_progress(self, params: mcp.ProgressNotificationParams, ctx: Context) -> None:
        self.heard.append(params.progress)


class Asked(Client):
    """Client that answers elicitations."""

    info = mcp.Implementation(name="asked", version="1")

    def on_elicit(self, params: mcp.ElicitRequestParams, ctx: runtime.Context) -> mcp.ElicitResult:
        return mcp.ElicitResult(action="accept", content={"of": type(params).__name__})


def serve(method: str, params: bytes | str | None = None, server: Server | None = None, ctx: object = None) -> Any:
    """Return the response of a server, by default of `Echo`."""
    return asyncio.run(dispatch(dispatcher.SERVER, server or Echo(), method, params, ctx))


def ask(method: str, params: str) -> Any:
    """Return the response of the client `Asked`."""
    return asyncio.run(dispatch(dispatcher.CLIENT, Asked(), method, params, None))


def refused(method: str, params: str | None) -> InvalidParams:
    """Return the error for invalid params."""
    with pytest.raises(InvalidParams) as caught:
        serve(method, params) if method in dispatcher.SERVER.routes else ask(method, params or "")
    return caught.value


def sides(revision: str) -> list[tuple[Dispatcher, Any]]:
    """Return both dispatchers of a revision, each with a target that overrides no handler."""
    package = import_module(f"mcp_bindgen.{revision}")
    return [(package.dispatcher.SERVER, package.Server()), (package.dispatcher.CLIENT, package.Client())]


# --- dispatching ----------------------------------------------------------------------------------------------


def test_coroutines_and_plain_functions_are_handlers() -> None:
    answer = serve("tools/call", b'{"name":"echo","arguments":{"n":1.0,"none":null}}')
    assert isinstance(answer, mcp.CallToolResult)
    assert (answer.structured_content, serve("ping", "{}").meta) == ({"n": 1.0, "none": None}, {"pong": True})


def test_a_handler_gets_the_context() -> None:
    Echo.heard.clear()
    ctx = Context(RequestScope.of(FakeLink()))
    serve("ping", "{}", ctx=ctx)
    assert Echo.heard == [(mcp.RequestParams(), ctx)]


@each("method", ["ping", "tools/list", "notifications/initialized"])
def test_absent_params_are_empty_where_they_are_optional(method: str) -> None:
    heard: list[Any] = []

    def hear(self: Any, params: Any, ctx: Any) -> Any:
        heard.append(params)

    kind = type("Listener", (Server,), {"ping": hear, "list_tools": hear, "on_initialized": hear})
    serve(method, None, server=kind())
    assert heard == [dispatcher.SERVER.routes[method].method.params()]


@each("method", ["tools/call", "completion/complete", "notifications/progress"])
def test_absent_params_are_refused_where_they_are_required(method: str) -> None:
    assert refused(method, None).data == [{"path": "params", "problem": "Field required"}]


@each("method", ["tools/cull", "", "TOOLS/CALL", "roots/list", "notifications/message"])
def test_a_method_that_a_server_does_not_receive_is_not_found(method: str) -> None:
    with pytest.raises(MethodNotFound) as caught:
        serve(method, "{}")
    assert (caught.value.code, caught.value.message) == (-32601, f"Method not found: {method}")


@every_revision
def test_a_method_is_not_offered_until_its_handler_is_overridden(revision: str) -> None:
    for side, target in sides(revision):
        assert side.offered(target) == []


@every_revision
def test_default_handlers_refuse_requests_and_ignore_notifications(revision: str) -> None:
    for side, target in sides(revision):
        for name, route in side.routes.items():
            stub = getattr(target, route.handler)
            if route.method.kind == "request":
                with pytest.raises(MethodNotFound):
                    stub(None, None)
            else:
                assert stub(None, None) is None, name


@each("params", ['{"name":"forecast"}', "{}", "not json", None])
def test_params_of_a_method_that_is_not_offered_are_not_validated(params: str | None) -> None:
    with pytest.raises(MethodNotFound):
        serve("prompts/get", params)
    assert serve("notifications/cancelled", params) is None


def test_overridden_methods_are_offered() -> None:
    tools = type("Tools", (Server,), {"list_tools": lambda self, params, ctx: mcp.ListToolsResult(tools=[])})
    echoes = {"tools/call", "ping", "completion/complete", "notifications/progress"}
    for kind, offered in (((Echo,), echoes), ((tools,), {"tools/list"}), ((tools, Echo), {"tools/list", *echoes})):
        assert set(dispatcher.SERVER.offered(type("Made", kind, {})())) == offered
    assert set(dispatcher.CLIENT.offered(Asked())) == {"elicitation/create"}


def test_an_error_in_a_handler_passes_through() -> None:
    params = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
    with pytest.raises(NotImplementedError):
        serve("completion/complete", json.dumps(params))


def test_a_handler_of_a_method_without_params_gets_only_the_context() -> None:
    class Stubs:
        dispatcher: Dispatcher

        def tick(self, ctx: int) -> runtime.Returns[int]:
            raise MethodNotFound("tick")

        def on_tock(self, ctx: int) -> runtime.Returns[None]:
            return None

    class Target(Stubs):
        def tick(self, ctx: int) -> int:
            return ctx + 1

        async def on_tock(self, ctx: int) -> None:
            raise LookupError(ctx)

    tick = RequestMethod[None, int]("tick", sender="client", params=None, result=int)
    tock = Notification[None]("tock", sender="client", params=None)
    side = Stubs.dispatcher = Dispatcher(REVISION, "server", Route(tick, "tick"), Route(tock, "on_tock"))
    assert asyncio.run(dispatch(side, Target(), "tick", None, 1)) == 2
    assert asyncio.run(dispatch(side, Target(), "tick", "{}", 1)) == 2
    with pytest.raises(LookupError):
        asyncio.run(dispatch(side, Target(), "tock", None, 1))
    with pytest.raises(MethodNotFound):
        asyncio.run(dispatch(side, Stubs(), "tick", None, 1))
    assert asyncio.run(dispatch(side, Stubs(), "tock", None, 1)) is None


# --- invalid params -------------------------------------------------------------------------------------------


STRING, OBJECT = "Input should be a valid string", "Input should be an object"
FINITE, RESOURCE = "Input should be a JSON value with finite numbers", '"ref":{"type":"ref/resource","uri":"x:"}'
PROBLEMS = [
    ("tools/call", "{}", "name", "Field required"),
    ("tools/call", '{"name":1}', "name", STRING),
    ("tools/call", "[]", "", OBJECT),
    ("ping", "null", "", OBJECT),
    ("tools/call", '{"name":"echo","arguments":{"n":[NaN]}}', "arguments.n", FINITE),
    ("tools/call", '{"name":"echo","_meta":[]}', "_meta", OBJECT),
    ("notifications/progress", '{"progressToken":"t","progress":"1"}', "progress", "Input should be a valid number"),
    ("completion/complete", f'{{"argument":{{"name":1,"value":""}},{RESOURCE}}}', "argument.name", STRING),
]


@each(("method", "params", "path", "problem"), PROBLEMS)
def test_an_error_for_invalid_params_has_the_path_and_the_problem(
    method: str, params: str, path: str, problem: str
) -> None:
    error = refused(method, params)
    assert (error.code, error.data) == (-32602, [{"path": f"params.{path}".rstrip("."), "problem": problem}])


def test_an_error_for_invalid_params_lists_each_problem() -> None:
    error = refused("completion/complete", f'{{"argument":{{"name":1}},{RESOURCE}}}')
    expected = [("params.argument.name", STRING), ("params.argument.value", "Field required")]
    assert [(problem["path"], problem["problem"]) for problem in error.data] == expected


@each(
    ("method", "params", "paths"),
    [
        ("tools/call", '{"name":"echo","_meta":{"progressToken":true}}', {"_meta.progressToken"}),
        ("completion/complete", '{"argument":{"name":"a","value":""},"ref":{"type":"ref/prompt"}}', {"ref.name"}),
        ("completion/complete", '{"argument":{"name":"a","value":""},"ref":{"type":"ref/file"}}', {"ref"}),
        ("elicitation/create", '{"message":"Who?"}', {"elicitationId", "mode", "url", "requestedSchema"}),
    ],
)
def test_error_paths_consist_of_wire_names(method: str, params: str, paths: set[str]) -> None:
    assert {problem["path"] for problem in refused(method, params).data} == {f"params.{path}" for path in paths}


@each("params", ["", "{", "nonsense", '{"name":', "{} {}"])
def test_params_that_are_not_json_are_invalid(params: str) -> None:
    [problem] = refused("tools/call", params).data
    assert problem["path"] == "params"
    assert problem["problem"].startswith("Invalid JSON")


def test_an_error_for_invalid_params_is_one_line_without_a_cause() -> None:
    error = refused("tools/call", '{"name":"x","arguments":[]}')
    message = "Invalid params of tools/call: params.arguments: Input should be an object"
    assert (str(error), error.message) == (f"{message} (-32602)", message)
    assert (error.__cause__, error.__suppress_context__, json.loads(json.dumps(error.data))) == (None, True, error.data)


def test_form_and_url_elicitations_are_distinguished_by_their_members() -> None:
    assert ask("elicitation/create", json.dumps(EMPTY_FORM)).content == {"of": "ElicitRequestFormParams"}
    visit = {"mode": "url", "message": "Go", "elicitationId": "1", "url": "https://example.org"}
    assert ask("elicitation/create", json.dumps(visit)).content == {"of": "ElicitRequestURLParams"}


def test_a_protocol_error_has_the_fields_of_json_rpc() -> None:
    error = ProtocolError(-32000, "No luck", {"again": True})
    assert (error.code, error.message, error.data) == (-32000, "No luck", {"again": True})
    assert str(error) == "No luck (-32000)"
    assert isinstance(MethodNotFound("x"), ProtocolError)


# --- calling --------------------------------------------------------------------------------------------------

RESULT = mcp.CallToolResult(content=[])
NOW = "2025-11-25T00:00:00Z"
TASK = mcp.Task(created_at=NOW, last_updated_at=NOW, status="working", task_id="1", ttl=None)
LATER = mcp.CreateTaskResult(task=TASK)


def test_a_call_returns_the_usual_result() -> None:
    link = FakeLink(RESULT)
    assert asyncio.run(Caller(link).call(methods.CALL_TOOL, mcp.CallToolRequestParams(name="echo"))) is RESULT
    assert asyncio.run(linked(Client, link).call_tool("echo")) is RESULT
    assert link.sent == [("tools/call", {"name": "echo"})] * 2


def test_a_call_raises_an_error_for_an_alternative_result_that_it_did_not_request() -> None:
    link = FakeLink(LATER)
    with pytest.raises(UnexpectedAnswer, match="tools/call was answered by CreateTaskResult") as caught:
        asyncio.run(linked(Client, link).call_tool("echo"))
    assert caught.value.answer is LATER
    assert asyncio.run(linked(Client, link).call_tool("echo", task=mcp.TaskMetadata(ttl=1))) is LATER
    assert link.sent == [("tools/call", {"name": "echo"}), ("tools/call", {"name": "echo", "task": {"ttl": 1}})]


def test_a_request_returns_usual_and_alternative_results() -> None:
    params = mcp.CallToolRequestParams(name="echo")
    for answer in (RESULT, LATER):
        assert asyncio.run(Caller(FakeLink(answer)).request(methods.CALL_TOOL, params)) is answer


def test_a_notification_returns_nothing() -> None:
    link = FakeLink(RESULT)
    asyncio.run(Caller(link).notify(methods.PROGRESS, mcp.ProgressNotificationParams(progress=1, progress_token=BIG)))
    assert link.sent == [("notifications/progress", {"progress": 1, "progressToken": BIG})]


def test_metadata_of_the_link_and_of_the_caller_are_merged() -> None:
    link = FakeLink(stateless.CallToolResult(content=[]), METADATA)
    caller = linked(StatelessClient, link)
    assert caller.metadata(stateless.RequestMetaObject, None).model_dump() == METADATA
    more = {"progressToken": 7, "org.example/x": None, "io.modelcontextprotocol/protocolVersion": "DRAFT"}
    asyncio.run(caller.call_tool("echo", {"message": "hi"}, meta=more))
    sent = {"name": "echo", "arguments": {"message": "hi"}, "_meta": {**METADATA, **more}}
    assert (link.sent, link.meta) == ([("tools/call", sent)], METADATA)


def test_missing_required_metadata_is_an_error() -> None:
    with pytest.raises(ValidationError, match="clientCapabilities"):
        asyncio.run(linked(StatelessClient, FakeLink()).list_tools())


def test_a_call_raises_an_error_for_an_input_required_result() -> None:
    answer = stateless.InputRequiredResult(input_requests={})
    assert answer.result_type == "input_required"
    link = FakeLink(answer, METADATA)
    with pytest.raises(UnexpectedAnswer):
        asyncio.run(linked(StatelessClient, link).call_tool("echo"))
    metadata = linked(StatelessClient, link).metadata(stateless.RequestMetaObject, None)
    params = stateless.CallToolRequestParams(name="echo", meta=metadata)
    assert asyncio.run(linked(StatelessClient, link).request(stateless_methods.CALL_TOOL, params)) is answer


def test_arguments_become_params() -> None:
    link = FakeLink()
    client = linked(Client, link)

    async def calls() -> None:
        await client.call_tool("echo", {"deep": [1, 1.0, None, {"a": True}]}, meta=mcp.RequestMeta())
        await client.list_tools()
        await client.list_tools("next")
        await client.set_level("warning")
        await client.complete(
            mcp.PromptReference(name="weather"),
            mcp.CompleteRequestParamsArgument(name="city", value="Be"),
            context=mcp.CompleteRequestParamsContext(arguments={"country": "DE"}),
        )
        await client.read_resource("test://x", meta=mcp.RequestMeta(progress_token="t"))
        await client.notify_roots_list_changed()

    asyncio.run(calls())
    completion = {"argument": {"name": "city", "value": "Be"}, "ref": {"type": "ref/prompt", "name": "weather"}}
    completion["context"] = {"arguments": {"country": "DE"}}  # type: ignore[dict-item]
    assert link.sent == [
        ("tools/call", {"name": "echo", "arguments": {"deep": [1, 1.0, None, {"a": True}]}, "_meta": {}}),
        ("tools/list", {}),
        ("tools/list", {"cursor": "next"}),
        ("logging/setLevel", {"level": "warning"}),
        ("completion/complete", completion),
        ("resources/read", {"uri": "test://x", "_meta": {"progressToken": "t"}}),
        ("notifications/roots/list_changed", {}),
    ]


def test_a_context_sends_requests_and_notifications_to_the_client() -> None:
    link = FakeLink(mcp.CreateMessageResult(model="m", role="assistant", content=mcp.TextContent(text="hi")))
    ctx = Context(RequestScope.of(link))
    message = mcp.SamplingMessage(role="user", content=mcp.TextContent(text="hello"))

    async def calls() -> None:
        await ctx.create_message([message], 100, temperature=1, stop_sequences=[])
        await ctx.list_roots()
        await ctx.elicit(mcp.ElicitRequestURLParams(elicitation_id="1", message="Go", url="https://example.org"))
        await ctx.notify_logging_message("info", None)
        await ctx.notify_tool_list_changed()

    asyncio.run(calls())
    said = {"role": "user", "content": {"type": "text", "text": "hello"}}
    visit = {"mode": "url", "elicitationId": "1", "message": "Go", "url": "https://example.org"}
    assert link.sent == [
        ("sampling/createMessage", {"maxTokens": 100, "messages": [said], "temperature": 1, "stopSequences": []}),
        ("roots/list", {}),
        ("elicitation/create", visit),
        ("notifications/message", {"data": None, "level": "info"}),
        ("notifications/tools/list_changed", {}),
    ]


def test_iteration_fetches_pages_until_there_is_no_cursor() -> None:
    schema = mcp.ToolInputSchema()
    tools = {name: mcp.Tool(name=name, input_schema=schema) for name in "abc"}

    pages: dict[str | None, Any] = {None: mcp.ListToolsResult(tools=[tools["a"], tools["b"]], next_cursor="")}
    pages |= {"": mcp.ListToolsResult(tools=[], next_cursor="2"), "2": mcp.ListToolsResult(tools=[tools["c"]])}
    link = FakeLink(lambda params: pages[params.cursor])

    async def names() -> list[str]:
        return [tool.name async for tool in linked(Client, link).iter_tools()]

    assert asyncio.run(names()) == ["a", "b", "c"]
    assert link.sent == [("tools/list", {}), ("tools/list", {"cursor": ""}), ("tools/list", {"cursor": "2"})]


def callers(revision: str) -> list[tuple[type[Caller], str, Mapping[str, Any]]]:
    """Return the calling classes of a revision, each with its role and the methods of the revision."""
    package = import_module(f"mcp_bindgen.{revision}")
    return [(package.Client, "client", package.methods.METHODS), (package.Context, "server", package.methods.METHODS)]


def stub_of(revision: str, name: str) -> str:
    """Return the name of the stub that sends a method."""
    module = import_module(f"mcp_bindgen.{revision}.methods")
    constant = next(key for key, value in vars(module).items() if value is module.METHODS[name])
    return constant.lower() if module.METHODS[name].kind == "request" else f"notify_{constant.lower()}"


@every_revision
def test_lifecycle_methods_have_no_call(revision: str) -> None:
    for cls, _, table in callers(revision):
        assert not [name for name in LIFECYCLE & table.keys() if hasattr(cls, stub_of(revision, name))]


@every_revision
def test_every_field_of_the_params_is_an_argument(revision: str) -> None:
    for cls, sender, table in callers(revision):
        for name, method in table.items():
            if method.sender not in (sender, "both") or name in LIFECYCLE:
                continue
            given = list(inspect.signature(getattr(cls, stub_of(revision, name))).parameters)[1:]
            if given == ["params"]:
                assert not isinstance(method.params, type), name
                continue
            fields = {field.rstrip("_"): info for field, info in method.params.model_fields.items()}
            assert sorted(argument.rstrip("_") for argument in given) == sorted(fields), name


@every_revision
def test_calls_without_required_arguments_send_empty_params(revision: str) -> None:
    metadata: dict[str, Any] = METADATA if revision == "v2026_07_28" else {}
    count = 0
    for cls, sender, table in callers(revision):
        for name, method in table.items():
            if method.sender not in (sender, "both") or method.carrier == "embedded" or name in LIFECYCLE:
                continue
            link = FakeLink(metadata=metadata)
            caller = linked(cls, link) if issubclass(cls, runtime.Client) else cast(Any, cls)(RequestScope.of(link))
            call = getattr(caller, stub_of(revision, name))
            if any(argument.default is argument.empty for argument in inspect.signature(call).parameters.values()):
                continue
            asyncio.run(call())
            count += 1
            assert link.sent == [(name, {} if (not metadata or method.kind == "notification") else {"_meta": metadata})]
    assert count >= 5


# --- laziness -------------------------------------------------------------------------------------------------


@each("package", ["runtime", *REVISIONS])
def test_a_package_has_all_exported_names_and_no_unknown_names(package: str) -> None:
    module = import_module(f"mcp_bindgen.{package}")
    assert all(getattr(module, name) is getattr(module, name) for name in module.__all__)
    with pytest.raises(AttributeError, match=rf"module 'mcp_bindgen\.{package}' has no attribute 'Nothing'"):
        _ = module.Nothing
    assert not hasattr(module, "__wrapped__")


@each(
    "package", ["app", "auth", "bridging", "cluster", "host", "http", "runtime", "runtime.abi", "sqlite", "telemetry"]
)
def test_type_checkers_and_python_see_the_same_names(package: str) -> None:
    module = import_module(f"mcp_bindgen.{package}")
    stub = Path(str(module.__file__)).with_suffix(".pyi")
    if stub.exists():
        body = ast.parse(stub.read_text("utf-8")).body
    else:
        (body,) = [node.body for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.If)]
    imports = [node for node in body if isinstance(node, ast.ImportFrom)]
    assert sorted(alias.name for node in imports for alias in node.names) == module.__all__ == dir(module)
    for node in imports:
        beside = import_module(f".{node.module}" if node.level else str(node.module), module.__package__)
        assert all(alias.name == alias.asname for alias in node.names)
        assert all(getattr(beside, alias.name) is getattr(module, alias.name) for alias in node.names)


def test_each_package_and_its_classes_have_the_name_of_the_revision() -> None:
    for package in REVISIONS:
        module = import_module(f"mcp_bindgen.{package}")
        revision = package.removeprefix("v").replace("_", "-")
        assert revision == str(module.REVISION) == module.Server.revision == module.Client.revision


def test_an_error_in_a_lazily_imported_module_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "lazy_package"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from mcp_bindgen.runtime.lazy import lazy\n"
        "__getattr__ = lazy(__name__, {'broken': 'broken', 'fine': 'fine', 'value': 'fine'})\n"
    )
    (package / "broken.py").write_text("{}['key']\n")
    (package / "fine.py").write_text("value = object()\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    module = import_module("lazy_package")
    assert "value" not in vars(module)
    assert module.value is module.fine.value
    assert "value" in vars(module)
    with pytest.raises(KeyError, match="key"):
        _ = module.broken


# --- models ---------------------------------------------------------------------------------------------------


class Thing(Model):
    """Model with every kind of field."""

    meta: dict[str, Json] | None = None
    kind: Literal["thing"] = "thing"
    display_name: str
    size: Integer | None = None
    note: Nullable[str] = None
    anything: Json = None
    left: str | None


def thing(text: str) -> Thing:
    return Thing.model_validate_json(text)


@each(
    ("name", "wire"),
    [("meta", "_meta"), ("next_cursor", "nextCursor"), ("name", "name"), ("a_b_c", "aBC"), ("schema_", "schema")],
)
def test_python_names_become_wire_names(name: str, wire: str) -> None:
    assert wire_name(name) == wire


@each(
    "text",
    [
        '{"kind":"thing","displayName":"x","left":null}',
        '{"_meta":{"a":null,"b":[null]},"kind":"thing","displayName":"x","size":1,"note":null,"left":"y"}',
        '{"kind":"thing","displayName":"x","anything":null,"left":null}',
        '{"kind":"thing","displayName":"x","anything":{"a":[1,1.0,true,null,"é"]},"left":null}',
        '{"kind":"thing","displayName":"x","left":null,"other":null,"display_name":{"deep":9007199254740993}}',
    ],
)
def test_a_model_writes_the_json_that_it_read(text: str) -> None:
    read = thing(text)
    assert json.loads(read.model_dump_json()) == json.loads(text)
    assert list(json.loads(TypeAdapter(Thing).dump_json(read)).items()) == list(json.loads(text).items())
    assert thing(read.model_dump_json()) == read
    assert pickle.loads(pickle.dumps(read)) == read == copy.deepcopy(read)


def test_an_optional_field_that_is_absent_stays_absent() -> None:
    read = thing('{"kind":"thing","displayName":"x","left":null}')
    assert (read.meta, read.size, read.note, read.anything) == (None, None, None, None)
    assert read.model_dump() == {"kind": "thing", "displayName": "x", "left": None}
    assert Thing(display_name="x", left=None, size=None).model_dump() == read.model_dump()


def test_null_is_kept_where_the_schema_allows_it() -> None:
    made = Thing(display_name="x", left=None, note=None, anything=None)
    assert made.model_dump() == {"kind": "thing", "displayName": "x", "left": None, "note": None, "anything": None}
    with pytest.raises(ValidationError):
        Thing(display_name="x", left=None, note=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@each(
    "text",
    [
        '{"displayName":"x","left":null}',
        '{"kind":"other","displayName":"x","left":null}',
        '{"kind":"thing","display_name":"x","left":null}',
        '{"kind":"thing","displayName":"x"}',
        '{"kind":"thing","displayName":1,"left":null}',
        '{"kind":"thing","displayName":"x","left":null,"size":"1"}',
        '{"kind":"thing","displayName":"x","left":null,"size":true}',
        '{"kind":"thing","displayName":"x","left":null,"note":1}',
        '{"kind":"thing","displayName":"x","left":null,"other":NaN}',
        "[]",
    ],
)
def test_a_model_refuses_values_that_violate_the_schema(text: str) -> None:
    with pytest.raises(ValidationError):
        thing(text)


def test_a_constructor_takes_python_names_and_fills_in_constants() -> None:
    assert Thing(display_name="x", left=None).kind == "thing"
    with pytest.raises(ValidationError, match="kind"):
        Thing.model_validate({"displayName": "x", "left": None})


def test_nested_dicts_have_wire_names() -> None:
    tool = mcp.Tool.model_validate({"name": "x", "inputSchema": {"type": "object", "$schema": "y"}})
    made = mcp.Tool(name="x", input_schema=cast(Any, {"type": "object", "$schema": "y"}))
    assert made == tool == mcp.Tool(name="x", input_schema=mcp.ToolInputSchema(schema_="y"))


@each("text", [b"hi", 1, None])
def test_a_constructor_converts_nothing(text: Any) -> None:
    with pytest.raises(ValidationError):
        mcp.TextContent(text=text)
    with pytest.raises(ValidationError):
        mcp.ListToolsResult(tools=cast(Any, ()))


def test_a_model_can_write_python_names() -> None:
    written = Thing(display_name="x", left=None).model_dump(by_alias=False)
    assert written == {"kind": "thing", "display_name": "x", "left": None}


def test_a_closed_model_refuses_undeclared_members() -> None:
    class Closed(Model, extra="forbid"):
        name: str

    assert Closed(name="x").model_dump() == {"name": "x"}
    with pytest.raises(ValidationError, match="other"):
        Closed.model_validate_json('{"name":"x","other":1}')


def test_the_repr_of_a_model_omits_constants_and_absent_fields() -> None:
    assert repr(Thing(display_name="x", left=None)) == "Thing(display_name='x')"
    assert repr(mcp.TextContent(text="hi")) == "TextContent(text='hi')"


# --- values ---------------------------------------------------------------------------------------------------

INTEGER = TypeAdapter[Any](Integer)
NUMBER = TypeAdapter[Any](Number)
BOOLEAN = TypeAdapter[Any](Boolean)
JSON = TypeAdapter[Any](Json)


HUGE = {str(BIG): BIG, str(10**30): 10**30}
NESTED = [1, [], {"a": {"b": None}}]
READ: list[tuple[TypeAdapter[Any], dict[str, Any]]] = [
    (INTEGER, {"1": 1, "1.0": 1, "-0.0": 0, "1e3": 1000, **HUGE}),
    (NUMBER, {"1": 1, "1.0": 1.0, "0.5": 0.5, **HUGE}),
    (BOOLEAN, {"true": True, "false": False}),
    (JSON, {"null": None, "true": True, "1": 1, "1.0": 1.0, '"1"': "1", json.dumps(NESTED): NESTED, **HUGE}),
]
READS = [(adapter, *case) for adapter, values in READ for case in values.items()]


@each(("adapter", "text", "value"), READS)
def test_values_are_read_and_written_with_their_exact_types(adapter: TypeAdapter[Any], text: str, value: Any) -> None:
    written = json.loads(adapter.dump_json(value))
    for read in (adapter.validate_json(text), adapter.validate_python(json.loads(text)), written):
        assert (read, type(read)) == (value, type(value))


@each(
    ("adapter", "texts"),
    [
        (INTEGER, ["1.5", "true", '"1"', "null", "[]", "{}", "1e400"]),
        (NUMBER, ["true", '"1"', "null", "[]", "{}", "1e400"]),
        (BOOLEAN, ["1", "0", '"true"', "null"]),
        (JSON, ["1e400", "[1e400]", '{"a":{"b":[1e400]}}']),
    ],
)
def test_values_of_other_types_are_refused(adapter: TypeAdapter[Any], texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(ValidationError):
            adapter.validate_json(text)
        with pytest.raises(ValidationError):
            adapter.validate_python(json.loads(text))


@each("adapter", [INTEGER, NUMBER, JSON, TypeAdapter[Any](dict[str, Json])])
@each("value", NOT_FINITE)
def test_numbers_are_finite(adapter: TypeAdapter[Any], value: float) -> None:
    for wrapped in (value, [value], {"a": value}):
        with pytest.raises(ValidationError):
            adapter.validate_python(wrapped)
        with pytest.raises(ValidationError):
            adapter.validate_json(json.dumps(wrapped))


@each("value", [b"x", {1: 2}, {b"a": 1}, {"a": {1, 2}}, object(), [mcp.Result()]])
def test_values_that_json_cannot_represent_are_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        JSON.validate_python(value)


# --- constants of the runtime that repeat a schema -------------------------------------------------------------


def test_the_runtime_has_the_error_codes_of_the_schema() -> None:
    codes = stateless_errors
    for name in ("PARSE_ERROR", "INVALID_REQUEST", "METHOD_NOT_FOUND", "INVALID_PARAMS", "INTERNAL_ERROR"):
        assert getattr(errors, name) == getattr(codes, name)
    revision = stateless_package.REVISION
    assert {getattr(codes, name) for name in revision.errors} == set(revision.errors.values())
    assert {UNSUPPORTED, MISSING, "HEADER_MISMATCH"} == set(revision.errors)


def test_the_runtime_has_the_metadata_keys_of_the_schema() -> None:
    models = (stateless.RequestMetaObject, stateless.ResultMetaObject, stateless.NotificationMetaObject)
    stated = {field.alias for model in models for field in model.model_fields.values()}
    emitted = set(stateless_package.REVISION.meta_keys.values())
    by_hand = {value for name, value in vars(meta_keys).items() if name.isupper()}
    assert emitted == by_hand == {alias for alias in stated if alias and alias.startswith("io.modelcontextprotocol/")}


@every_revision
def test_methods_that_the_runtime_names_are_in_the_schemas(revision: str) -> None:
    named = {value for name, value in vars(lifecycle).items() if name.isupper() and isinstance(value, str)}
    assert named <= {name for package in REVISIONS for name in import_module(f"mcp_bindgen.{package}.methods").METHODS}
    assert named & set(import_module(f"mcp_bindgen.{revision}.methods").METHODS)


@pytest.mark.full
def test_nested_json_costs_no_more_than_flat_json() -> None:
    """The error message of a mismatch must not copy the value once for each nesting level."""
    reader: TypeAdapter[Any] = TypeAdapter(dict[str, Json])

    def seconds(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> float:
        text = b'{"a":[' + b",".join([opening * depth + b"1" + closing * depth] * (20_000 // depth)) + b"]}"
        begun = time.process_time()
        reader.validate_json(text)
        return time.process_time() - begun

    flat = min(seconds(1) for _ in range(3))
    assert min(seconds(128) for _ in range(3)) < 10 * flat
    assert min(seconds(128, b'{"a":', b"}") for _ in range(3)) < 10 * flat
