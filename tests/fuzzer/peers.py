"""A server and a client of each revision with handlers that end soon for every request.

`python -m tests.fuzzer.peers [REVISION ...] [--http HOST:PORT]` serves the revisions, or all of them.
"""

from __future__ import annotations

import logging
import re
import sys
from typing import Any

import anyio

from mcp_bindgen.runtime import ProtocolError, Server, run
from mcp_bindgen.runtime.protocol.limits import Options
from mcp_bindgen.runtime.session.rounds import RequestStateSigner
from tests.harness.checked_connections import STATEFUL, STATELESS, bindings

REVISIONS = [*STATEFUL, STATELESS]
TOOLS = ("echo", "pause", "count", "ask", "log", "fail", "refuse")
INVALID_PARAMS = -32602
ANSWER = 0.2
"""Seconds that a server waits for the answer to a request of its own."""


def server(revision: str) -> Server:
    """Return a server with all features of a revision."""
    package: Any = bindings(revision)
    mcp = package.types
    stateless = revision == STATELESS

    class Everything(package.Server):  # type: ignore[misc]
        """Server that answers each request quickly."""

        info = mcp.Implementation(name="fuzzer", version="1")
        instructions = "Try everything."
        options = Options(timeout=ANSWER)
        request_state_signer = RequestStateSigner([b"fuzzer".ljust(16)])

        async def list_tools(self, params: Any, ctx: Any) -> Any:
            schema = mcp.ToolInputSchema(properties={"text": {"type": "string"}})
            return mcp.ListToolsResult(tools=[mcp.Tool(name=name, input_schema=schema) for name in TOOLS])

        async def call_tool(self, params: Any, ctx: Any) -> Any:
            if params.name not in TOOLS:
                raise ProtocolError(INVALID_PARAMS, "Unknown tool")
            said = await getattr(self, f"_{params.name}")(ctx, params.arguments or {})
            return mcp.CallToolResult(content=[mcp.TextContent(text=str(said)[:1000])])

        async def _echo(self, ctx: Any, arguments: Any) -> object:
            return arguments.get("text")

        async def _pause(self, ctx: Any, arguments: Any) -> object:
            await anyio.sleep(0.005)
            return "done"

        async def _count(self, ctx: Any, arguments: Any) -> object:
            for number in range(3):
                await ctx.progress(number, 3)
                await anyio.sleep(0)
            return "counted"

        async def _log(self, ctx: Any, arguments: Any) -> object:
            await ctx.log("error", arguments)
            return "logged"

        async def _ask(self, ctx: Any, arguments: Any) -> object:
            message = mcp.SamplingMessage(role="user", content=mcp.TextContent(text="Hello?"))
            await ctx.ask_params("model", mcp.CreateMessageRequestParams(max_tokens=9, messages=[message]))
            if hasattr(mcp, "ElicitResult"):
                await ctx.ask_params("user", _form(mcp))
            roots = await ctx.ask_params("roots", getattr(mcp, "ListRootsRequestParams", mcp.RequestParams)())
            return [root.uri for root in roots.roots]

        async def _fail(self, ctx: Any, arguments: Any) -> object:
            raise ZeroDivisionError

        async def _refuse(self, ctx: Any, arguments: Any) -> object:
            raise ProtocolError(1, "no", arguments)

        async def list_resources(self, params: Any, ctx: Any) -> Any:
            return mcp.ListResourcesResult(resources=[mcp.Resource(uri="test://a", name="a")])

        async def list_resource_templates(self, params: Any, ctx: Any) -> Any:
            return mcp.ListResourceTemplatesResult(
                resource_templates=[mcp.ResourceTemplate(uri_template="test://{id}", name="any")]
            )

        async def read_resource(self, params: Any, ctx: Any) -> Any:
            return mcp.ReadResourceResult(contents=[mcp.TextResourceContents(uri=params.uri, text="Größe \U0001f600")])

        async def list_prompts(self, params: Any, ctx: Any) -> Any:
            return mcp.ListPromptsResult(prompts=[mcp.Prompt(name="greet")])

        async def get_prompt(self, params: Any, ctx: Any) -> Any:
            return mcp.GetPromptResult(
                messages=[mcp.PromptMessage(role="user", content=mcp.TextContent(text="Say hello."))]
            )

        async def complete(self, params: Any, ctx: Any) -> Any:
            return mcp.CompleteResult(completion=mcp.CompleteResultCompletion(values=["a", "b"]))

        if not stateless:

            async def subscribe(self, params: Any, ctx: Any) -> Any:
                return mcp.Result()

            async def unsubscribe(self, params: Any, ctx: Any) -> Any:
                return mcp.Result()

    found: Server = Everything()
    return found


def _form(mcp: Any) -> Any:
    if hasattr(mcp, "ElicitRequestFormParams"):
        schema = mcp.ElicitRequestFormParamsRequestedSchema.model_validate({"type": "object", "properties": {}})
        return mcp.ElicitRequestFormParams(message="Who?", requested_schema=schema)
    schema = mcp.ElicitRequestParamsRequestedSchema.model_validate({"type": "object", "properties": {}})
    return mcp.ElicitRequestParams(message="Who?", requested_schema=schema)


def client(revision: str) -> Any:
    """Return a client that answers every request."""
    package: Any = bindings(revision)
    mcp = package.types

    class Agreeable(package.Client):  # type: ignore[misc]
        """Client that answers at once."""

        info = mcp.Implementation(name="fuzzer", version="1")

        async def on_create_message(self, params: Any, ctx: Any) -> Any:
            content = mcp.TextContent(text="Hello!")
            return mcp.CreateMessageResult(content=content, model="none", role="assistant")

        async def on_list_roots(self, *arguments: Any) -> Any:
            return mcp.ListRootsResult(roots=[mcp.Root(uri="file:///a", name="a")])

        async def on_elicit(self, params: Any, ctx: Any) -> Any:
            return mcp.ElicitResult(action="accept", content={"name": "Ada"})

        async def on_logging_message(self, params: Any, ctx: Any) -> None: ...

        async def on_tool_list_changed(self, params: Any, ctx: Any) -> None: ...

    return Agreeable()


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)  # logging each message would take most of the time
    named = [word for word in sys.argv[1:] if re.fullmatch(r"\d{4}-\d\d-\d\d", word)]
    sys.argv[1:] = [word for word in sys.argv[1:] if word not in named]
    run(*map(server, named or REVISIONS))
