"""Everyday code of servers and clients, in all revisions; both type checkers accept it, and a test runs `main`."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from mcp_bindgen import runtime
from mcp_bindgen.v2024_11_05 import types as v2024_11_05
from mcp_bindgen.v2025_03_26 import types as v2025_03_26
from mcp_bindgen.v2025_06_18 import types as v2025_06_18
from mcp_bindgen.v2025_11_25 import Context, Server
from mcp_bindgen.v2025_11_25 import types as mcp
from mcp_bindgen.v2026_07_28 import types as v2026_07_28


class Search(BaseModel):
    """Arguments of a tool."""

    query: str
    limit: int = 10


SCHEMA: dict[str, Any] = Search.model_json_schema()
CLOSED = {"type": "object", "properties": {"q": {"type": "string"}}, "additionalProperties": False}


def tools() -> list[runtime.Json]:
    """Describe a tool with schemas of all forms."""
    return [
        v2024_11_05.Tool(name="a", input_schema=v2024_11_05.ToolInputSchema(properties={}, additionalProperties=False)),
        v2024_11_05.Tool(name="b", input_schema=CLOSED),
        v2025_03_26.Tool(
            name="a", input_schema=v2025_03_26.ToolInputSchema(required=["q"], additionalProperties=False)
        ),
        v2025_03_26.Tool(name="b", input_schema={"type": "object"}, annotations=v2025_03_26.ToolAnnotations(title="B")),
        v2025_06_18.Tool(name="a", input_schema=v2025_06_18.ToolInputSchema(additionalProperties=False)),
        v2025_06_18.Tool(name="b", input_schema=SCHEMA, output_schema=CLOSED, meta={"example.com/a": 1}),
        mcp.Tool(name="a", input_schema=mcp.ToolInputSchema(**SCHEMA, minProperties=1), output_schema=None),
        mcp.Tool(name="b", input_schema=SCHEMA, output_schema={"type": "object"}, icons=[mcp.Icon(src="data:,")]),
        v2026_07_28.Tool(name="a", input_schema=v2026_07_28.ToolInputSchema(oneOf=[], additionalProperties=False)),
        v2026_07_28.Tool(name="b", input_schema=CLOSED, output_schema={"anyOf": [{"type": "null"}]}),
    ]


def forms() -> list[runtime.Json]:
    """Ask for input with forms of every kind."""
    name = mcp.StringSchema(title="Name", min_length=1)
    colour = mcp.UntitledSingleSelectEnumSchema(enum=["red", "green"])
    properties: dict[str, mcp.PrimitiveSchemaDefinition] = {"name": name, "colour": colour}
    form = mcp.ElicitRequestFormParamsRequestedSchema(properties=properties, additionalProperties=False)
    plain = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    return [
        v2025_06_18.ElicitRequestParams(message="Who?", requested_schema=plain),
        mcp.ElicitRequestFormParams(message="Who?", requested_schema=form),
        mcp.ElicitRequestFormParams(message="Who?", requested_schema=plain),
        v2026_07_28.ElicitRequestFormParams(message="Who?", requested_schema=plain),
        v2026_07_28.InputRequiredResult(request_state="signed"),
    ]


def results(rows: list[dict[str, int]]) -> list[runtime.Json]:
    """Answer requests."""
    text = [mcp.TextContent(text=f"{row}") for row in rows]
    link = mcp.ResourceLink(name="rows", uri="file:///rows.json", mime_type="application/json")
    contents = mcp.TextResourceContents(uri="file:///rows.json", text="[]")
    return [
        mcp.CallToolResult(content=[*text, link], structured_content={"rows": rows}),
        mcp.CallToolResult(content=[mcp.ImageContent(data="", mime_type="image/png")], is_error=True),
        mcp.CallToolResult(content=[mcp.EmbeddedResource(resource=contents)]),
        mcp.ReadResourceResult(contents=[contents, mcp.BlobResourceContents(uri="file:///a", blob="")]),
        mcp.ListResourcesResult(resources=[mcp.Resource(name="rows", uri="file:///rows.json", size=2)]),
        mcp.ListPromptsResult(prompts=[mcp.Prompt(name="sum", arguments=[mcp.PromptArgument(name="of")])]),
        mcp.GetPromptResult(messages=[mcp.PromptMessage(role="user", content=mcp.TextContent(text="Sum it up"))]),
        mcp.CompleteResult(completion=mcp.CompleteResultCompletion(values=["red"], has_more=False)),
    ]


def own_members() -> list[runtime.Json]:
    """Send members that the schema does not name."""
    trace = {"com.example/trace": "1"}
    stateful = [types.RequestMeta(**trace, **{"com.example/deep": {"a": 1}}) for types in (v2024_11_05, v2025_06_18)]
    return [
        *stateful,
        v2024_11_05.Result(outcome="stored", meta=trace),
        mcp.GetTaskPayloadResult(content=[], structured_content={"a": 1}),
        mcp.CallToolRequestParams(name="a", meta=mcp.RequestMeta(progress_token=1, **trace)),
        v2026_07_28.CallToolResult(content=[], meta=v2026_07_28.ResultMetaObject(**trace)),
        v2026_07_28.NotificationParams(meta=v2026_07_28.NotificationMetaObject(**trace)),
    ]


class Everyday(Server):
    """Server that asks a model and the user."""

    info = mcp.Implementation(name="everyday", version="1.0.0")

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        messages = [mcp.SamplingMessage(role="user", content=mcp.TextContent(text=params.name))]
        hints = mcp.ModelPreferences(hints=[mcp.ModelHint(name="small")], cost_priority=1)
        said = await ctx.create_message(messages, 100, model_preferences=hints, temperature=0.5, stop_sequences=["."])
        asked = await ctx.elicit(mcp.ElicitRequestFormParams(message="Send?", requested_schema=CLOSED))
        if asked.action == "accept" and asked.content is not None:
            return mcp.CallToolResult(content=[mcp.TextContent(text=f"{asked.content['q']}: {said.content}")])
        return mcp.CallToolResult(content=[], structured_content={"action": asked.action})


def main() -> list[runtime.Json]:
    """Make everything once."""
    return [*tools(), *forms(), *results([{"a": 1}]), *own_members()]
