"""The server that the official conformance suite talks to: clients of all revisions, both eras, one address.

    python examples/conformance_server.py --port 8000

serves http://127.0.0.1:8000/mcp. It is one class, typed by 2026-07-28; other revisions are converted. The tools,
resources and prompts are in `conformance_features/`.
"""

# The suite tests deprecated methods, too.
# pyright: reportDeprecated=false

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import anyio
from conformance_features import jobs, prompts, resources, tools
from conformance_features import skills as features
from conformance_features.call import Call, Object
from pydantic import TypeAdapter

from mcp_bindgen.cluster import RedisStore
from mcp_bindgen.extensions.tasks import RedisTaskStore, Tasks, task
from mcp_bindgen.http import serve_http
from mcp_bindgen.runtime import Notification, RequestMethod
from mcp_bindgen.v2026_07_28 import Context, methods
from mcp_bindgen.v2026_07_28 import types as mcp
from mcp_bindgen.v2026_07_28.extensions import skills, tasks

DONE = {"resultType": "complete"}
FRESH = DONE | {"ttlMs": 0, "cacheScope": "private"}  # may change at any time

Rounds: TypeAlias = Callable[[mcp.CallToolRequestParams], Awaitable[mcp.CallToolResult | mcp.InputRequiredResult]]


class Everything(tasks.Server, skills.Server):
    """Everything, and tools whose results ask for input."""

    info = mcp.Implementation(name="mcp-bindgen-conformance", version="1.0.0")

    def begin(self, ctx: Context, arguments: Mapping[str, Any] | None) -> Call:
        """Return the request as the functions in `conformance_features/` see it."""

        async def ask(key: str, method: str, params: Object) -> Object:
            request = methods.METHODS[method]
            assert isinstance(request, RequestMethod)
            answer = await ctx.ask_by(key, request, TypeAdapter(request.params).validate_python(params))
            wire: Object = answer.model_dump()
            return wire

        return Call(arguments or {}, ctx, ask, self.announce)

    async def announce(self, method: str, params: Object) -> None:
        """Tell all clients."""
        notification = methods.METHODS[method]
        assert isinstance(notification, Notification)
        typed = TypeAdapter(notification.params).validate_python(params)
        await self.broadcast(lambda client: client.notify(notification, typed))

    async def list_tools(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListToolsResult:
        more = [
            {"name": name, "description": description, "inputSchema": {"type": "object"}}
            for name, (description, _) in ROUNDS.items()
        ]
        return mcp.ListToolsResult.model_validate(FRESH | {"tools": tools.list_tools() + more})

    @task(tools=jobs.TASKS)
    async def call_tool(
        self, params: mcp.CallToolRequestParams, ctx: Context
    ) -> mcp.CallToolResult | mcp.InputRequiredResult:
        if params.name in ROUNDS:
            return await ROUNDS[params.name][1](params)
        result = await tools.call_tool(params.name, self.begin(ctx, params.arguments))
        return mcp.CallToolResult.model_validate(DONE | result)

    async def list_resources(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListResourcesResult:
        return mcp.ListResourcesResult.model_validate(FRESH | {"resources": resources.list_resources()})

    async def list_resource_templates(
        self, params: mcp.PaginatedRequestParams, ctx: Context
    ) -> mcp.ListResourceTemplatesResult:
        templates = resources.list_resource_templates()
        return mcp.ListResourceTemplatesResult.model_validate(FRESH | {"resourceTemplates": templates})

    async def read_resource(self, params: mcp.ReadResourceRequestParams, ctx: Context) -> mcp.ReadResourceResult:
        return mcp.ReadResourceResult.model_validate(FRESH | {"contents": resources.read_resource(params.uri)})

    async def list_skills(self, params: mcp.PaginatedRequestParams, ctx: Context) -> skills.types.ListSkillsResult:
        return skills.types.ListSkillsResult.model_validate(FRESH | features.list_skills(params.cursor))

    async def get_skill(self, params: skills.types.GetSkillRequestParams, ctx: Context) -> skills.types.GetSkillResult:
        return skills.types.GetSkillResult.model_validate(FRESH | {"skill": features.get_skill(params.uri)})

    async def read_resource_directory(
        self, params: skills.types.ReadResourceDirectoryRequestParams, ctx: Context
    ) -> skills.types.ReadResourceDirectoryResult:
        found = features.read_directory(params.uri, params.cursor)
        return skills.types.ReadResourceDirectoryResult.model_validate(DONE | found)

    async def list_prompts(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListPromptsResult:
        return mcp.ListPromptsResult.model_validate(FRESH | {"prompts": prompts.list_prompts()})

    async def get_prompt(self, params: mcp.GetPromptRequestParams, ctx: Context) -> mcp.GetPromptResult:
        result = await prompts.get_prompt(params.name, self.begin(ctx, params.arguments))
        return mcp.GetPromptResult.model_validate(DONE | result)

    async def complete(self, params: mcp.CompleteRequestParams, ctx: Context) -> mcp.CompleteResult:
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
"""Name -> description and function of the tools that write by hand the results that `ctx.ask_params` makes."""


def main() -> None:
    """Serve until the process is stopped."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--redis", metavar="URL", help="be one of several workers that share this Redis")
    given = parser.parse_args()
    server, store = Everything(), None
    if given.redis is not None:
        store = RedisStore(given.redis)
        server.own_tasks = Tasks(RedisTaskStore(given.redis))
    anyio.run(partial(serve_http, server, address=f"127.0.0.1:{given.port}", store=store))


if __name__ == "__main__":
    main()
