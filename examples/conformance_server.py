"""The server that the official conformance suite talks to: clients of four revisions, both eras, one address.

    python examples/conformance_server.py --port 8000

serves http://127.0.0.1:8000/mcp. What the tools, resources and prompts do is in `conformance_features/`; here a class
for each revision says it in the types of that revision.
"""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, TypeAlias

import anyio
from conformance_features import prompts, resources, tools
from conformance_features.call import Call, Object
from pydantic import TypeAdapter

from mcp_bindgen import v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28
from mcp_bindgen.runtime import CapabilityMissing, Context, Method, Notification, Request, Server
from mcp_bindgen.runtime.core.errors import INVALID_PARAMS
from mcp_bindgen.runtime.http.server.serve import serve_http
from mcp_bindgen.runtime.http.server.shared_store.redis import RedisStore
from mcp_bindgen.v2025_03_26 import types as mcp0326
from mcp_bindgen.v2025_06_18 import types as mcp0618
from mcp_bindgen.v2025_11_25 import types as mcp1125
from mcp_bindgen.v2026_07_28 import types as mcp

INFO = {"name": "mcp-bindgen-conformance", "version": "1.0.0"}
RESOURCE_NOT_FOUND = -32002  # up to 2025-11-25; later revisions count it among the invalid params


class Fixture(Server):
    """What the servers of all revisions have in common: JSON here, the types of `methods` on the way to clients."""

    methods: ClassVar[Mapping[str, Method]]

    def begin(self, ctx: Context, arguments: Mapping[str, Any] | None) -> Call:
        """Return the request as the functions in `conformance_features/` see it."""

        async def ask(key: str, method: str, params: Object) -> Object:
            request = self.methods[method]
            assert isinstance(request, Request)
            answer = await ctx.ask_by(key, request, TypeAdapter(request.params).validate_python(params))
            wire: Object = answer.model_dump()
            return wire

        return Call(arguments or {}, ctx, ask, announce)

    async def announce(self, method: str, params: Object) -> None:
        """Tell the clients of this revision."""
        notification = self.methods[method]
        assert isinstance(notification, Notification)
        typed = TypeAdapter(notification.params).validate_python(params)

        async def tell(client: Context) -> None:
            with suppress(CapabilityMissing):  # the server of an old revision, which offers tools only
                await client.notify(notification, typed)

        await self.broadcast(tell)


async def announce(method: str, params: Object) -> None:
    """Tell the clients of every revision."""
    for server in SERVERS:
        await server.announce(method, params)


# --- the revisions before 2025-11-25, as far as tools go ----------------------------------------------------------


class For202503(Fixture, v2025_03_26.Server):
    """2025-03-26."""

    info = mcp0326.Implementation.model_validate(INFO)
    methods = v2025_03_26.methods.METHODS

    async def list_tools(
        self, params: mcp0326.ListToolsRequestParams, ctx: v2025_03_26.Context
    ) -> mcp0326.ListToolsResult:
        return mcp0326.ListToolsResult.model_validate({"tools": tools.list_tools()})

    async def call_tool(
        self, params: mcp0326.CallToolRequestParams, ctx: v2025_03_26.Context
    ) -> mcp0326.CallToolResult:
        result = await tools.call_tool(params.name, self.begin(ctx, params.arguments))
        return mcp0326.CallToolResult.model_validate(result)


class For202506(Fixture, v2025_06_18.Server):
    """2025-06-18."""

    info = mcp0618.Implementation.model_validate(INFO)
    methods = v2025_06_18.methods.METHODS

    async def list_tools(
        self, params: mcp0618.ListToolsRequestParams, ctx: v2025_06_18.Context
    ) -> mcp0618.ListToolsResult:
        return mcp0618.ListToolsResult.model_validate({"tools": tools.list_tools()})

    async def call_tool(
        self, params: mcp0618.CallToolRequestParams, ctx: v2025_06_18.Context
    ) -> mcp0618.CallToolResult:
        result = await tools.call_tool(params.name, self.begin(ctx, params.arguments))
        return mcp0618.CallToolResult.model_validate(result)


# --- the last revision with a handshake ---------------------------------------------------------------------------


class For202511(Fixture, v2025_11_25.Server):
    """2025-11-25: everything, and clients that subscribe to resources: which ones, the runtime remembers."""

    info = mcp1125.Implementation.model_validate(INFO)
    methods = v2025_11_25.methods.METHODS

    async def list_tools(
        self, params: mcp1125.PaginatedRequestParams, ctx: v2025_11_25.Context
    ) -> mcp1125.ListToolsResult:
        return mcp1125.ListToolsResult.model_validate({"tools": tools.list_tools()})

    async def call_tool(
        self, params: mcp1125.CallToolRequestParams, ctx: v2025_11_25.Context
    ) -> mcp1125.CallToolResult:
        result = await tools.call_tool(params.name, self.begin(ctx, params.arguments))
        return mcp1125.CallToolResult.model_validate(result)

    async def list_resources(
        self, params: mcp1125.PaginatedRequestParams, ctx: v2025_11_25.Context
    ) -> mcp1125.ListResourcesResult:
        return mcp1125.ListResourcesResult.model_validate({"resources": resources.list_resources()})

    async def list_resource_templates(
        self, params: mcp1125.PaginatedRequestParams, ctx: v2025_11_25.Context
    ) -> mcp1125.ListResourceTemplatesResult:
        templates = resources.list_resource_templates()
        return mcp1125.ListResourceTemplatesResult.model_validate({"resourceTemplates": templates})

    async def read_resource(
        self, params: mcp1125.ReadResourceRequestParams, ctx: v2025_11_25.Context
    ) -> mcp1125.ReadResourceResult:
        contents = resources.read_resource(params.uri, RESOURCE_NOT_FOUND)
        return mcp1125.ReadResourceResult.model_validate({"contents": contents})

    async def subscribe(self, params: mcp1125.SubscribeRequestParams, ctx: v2025_11_25.Context) -> mcp1125.EmptyResult:
        return mcp1125.EmptyResult()

    async def unsubscribe(
        self, params: mcp1125.UnsubscribeRequestParams, ctx: v2025_11_25.Context
    ) -> mcp1125.EmptyResult:
        return mcp1125.EmptyResult()

    async def list_prompts(
        self, params: mcp1125.PaginatedRequestParams, ctx: v2025_11_25.Context
    ) -> mcp1125.ListPromptsResult:
        return mcp1125.ListPromptsResult.model_validate({"prompts": prompts.list_prompts()})

    async def get_prompt(
        self, params: mcp1125.GetPromptRequestParams, ctx: v2025_11_25.Context
    ) -> mcp1125.GetPromptResult:
        result = await prompts.get_prompt(params.name, self.begin(ctx, params.arguments))
        return mcp1125.GetPromptResult.model_validate(result)

    async def complete(self, params: mcp1125.CompleteRequestParams, ctx: v2025_11_25.Context) -> mcp1125.CompleteResult:
        return mcp1125.CompleteResult.model_validate({"completion": prompts.complete(params.argument.value)})


# --- the revision without one -------------------------------------------------------------------------------------

DONE = {"resultType": "complete"}
FRESH = DONE | {"ttlMs": 0, "cacheScope": "private"}  # may change at any time

Rounds: TypeAlias = Callable[[mcp.CallToolRequestParams], Awaitable[mcp.CallToolResult | mcp.InputRequiredResult]]


class For202607(Fixture, v2026_07_28.Server):
    """2026-07-28: everything, and tools that say in their results what they want to know."""

    info = mcp.Implementation.model_validate(INFO)
    methods = v2026_07_28.methods.METHODS

    async def list_tools(self, params: mcp.PaginatedRequestParams, ctx: v2026_07_28.Context) -> mcp.ListToolsResult:
        more = [
            {"name": name, "description": description, "inputSchema": {"type": "object"}}
            for name, (description, _) in ROUNDS.items()
        ]
        return mcp.ListToolsResult.model_validate(FRESH | {"tools": tools.list_tools() + more})

    async def call_tool(
        self, params: mcp.CallToolRequestParams, ctx: v2026_07_28.Context
    ) -> mcp.CallToolResult | mcp.InputRequiredResult:
        if params.name in ROUNDS:
            return await ROUNDS[params.name][1](params)
        result = await tools.call_tool(params.name, self.begin(ctx, params.arguments))
        return mcp.CallToolResult.model_validate(DONE | result)

    async def list_resources(
        self, params: mcp.PaginatedRequestParams, ctx: v2026_07_28.Context
    ) -> mcp.ListResourcesResult:
        return mcp.ListResourcesResult.model_validate(FRESH | {"resources": resources.list_resources()})

    async def list_resource_templates(
        self, params: mcp.PaginatedRequestParams, ctx: v2026_07_28.Context
    ) -> mcp.ListResourceTemplatesResult:
        templates = resources.list_resource_templates()
        return mcp.ListResourceTemplatesResult.model_validate(FRESH | {"resourceTemplates": templates})

    async def read_resource(
        self, params: mcp.ReadResourceRequestParams, ctx: v2026_07_28.Context
    ) -> mcp.ReadResourceResult:
        return mcp.ReadResourceResult.model_validate(
            FRESH | {"contents": resources.read_resource(params.uri, INVALID_PARAMS)}
        )

    async def list_prompts(self, params: mcp.PaginatedRequestParams, ctx: v2026_07_28.Context) -> mcp.ListPromptsResult:
        return mcp.ListPromptsResult.model_validate(FRESH | {"prompts": prompts.list_prompts()})

    async def get_prompt(self, params: mcp.GetPromptRequestParams, ctx: v2026_07_28.Context) -> mcp.GetPromptResult:
        result = await prompts.get_prompt(params.name, self.begin(ctx, params.arguments))
        return mcp.GetPromptResult.model_validate(DONE | result)

    async def complete(self, params: mcp.CompleteRequestParams, ctx: v2026_07_28.Context) -> mcp.CompleteResult:
        return mcp.CompleteResult.model_validate(DONE | {"completion": prompts.complete(params.argument.value)})


def form(message: str, field: str, kind: str) -> mcp.ElicitRequest:
    """Return a form with one field."""
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    requested = mcp.ElicitRequestFormParamsRequestedSchema.model_validate(schema)
    return mcp.ElicitRequest(params=mcp.ElicitRequestFormParams(message=message, requested_schema=requested))


def said(words: str) -> mcp.CallToolResult:
    """Return a result that is text."""
    return mcp.CallToolResult(content=[mcp.TextContent(text=words)])


async def confirm(params: mcp.CallToolRequestParams) -> mcp.CallToolResult | mcp.InputRequiredResult:
    """Ask for confirmation, and keep in `request_state` that it was asked; the runtime rejects a forged state."""
    if params.request_state == "asked" and "confirm" in (params.input_responses or {}):
        return said("state-ok: it is what it was")
    question = form("Please confirm", "ok", "boolean")
    return mcp.InputRequiredResult(input_requests={"confirm": question}, request_state="asked")


async def three_questions(params: mcp.CallToolRequestParams) -> mcp.CallToolResult | mcp.InputRequiredResult:
    """Ask the user, the model and the client, all in one round."""
    greet = mcp.SamplingMessage(role="user", content=mcp.TextContent(text="Generate a greeting"))
    questions: mcp.InputRequests = {
        "user_name": form("What is your name?", "name", "string"),
        "greeting": mcp.CreateMessageRequest(params=mcp.CreateMessageRequestParams(messages=[greet], max_tokens=50)),
        "client_roots": mcp.ListRootsRequest(),
    }
    answers = params.input_responses or {}
    if questions.keys() <= answers.keys():
        return said(f"All is answered: {', '.join(answers)}")
    return mcp.InputRequiredResult(input_requests=questions, request_state="asked")


async def two_rounds(params: mcp.CallToolRequestParams) -> mcp.CallToolResult | mcp.InputRequiredResult:
    """Ask for one thing, and once it is known, for another; `request_state` says how far it is."""
    answers = params.input_responses or {}
    if params.request_state == "round 2" and "step2" in answers:
        return said("Both rounds are over")
    if params.request_state == "round 2" or (params.request_state == "round 1" and "step1" in answers):
        question = form("Step 2: What is your favourite colour?", "color", "string")
        return mcp.InputRequiredResult(input_requests={"step2": question}, request_state="round 2")
    question = form("Step 1: What is your name?", "name", "string")
    return mcp.InputRequiredResult(input_requests={"step1": question}, request_state="round 1")


ROUNDS: dict[str, tuple[str, Rounds]] = {
    "test_input_required_result_request_state": ("Remembers what it asked.", confirm),
    "test_input_required_result_tampered_state": ("Notices when that was changed.", confirm),
    "test_input_required_result_multiple_inputs": ("Asks three questions at once.", three_questions),
    "test_input_required_result_multi_round": ("Asks twice.", two_rounds),
}
"""Name -> description and function of the tools that do by hand what `ctx.ask_params` does for the others."""

SERVERS: tuple[Fixture, ...] = (For202503(), For202506(), For202511(), For202607())


def main() -> None:
    """Serve until the process is stopped."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--redis", metavar="URL", help="be one of several workers that share this Redis")
    given = parser.parse_args()
    store = None if given.redis is None else RedisStore(given.redis)
    anyio.run(partial(serve_http, *SERVERS, address=f"127.0.0.1:{given.port}", store=store))


if __name__ == "__main__":
    main()
