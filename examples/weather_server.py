"""A server with two tools, a resource and a prompt: `python examples/weather_server.py` speaks stdio."""

from typing import Literal

import anyio
from pydantic import BaseModel, Field, ValidationError

from mcp_bindgen.runtime import InvalidParams, run
from mcp_bindgen.v2025_11_25 import Context, Server
from mcp_bindgen.v2025_11_25 import types as mcp

SKIES = {"Bergen": ["rain", "more rain", "sun"], "Cairo": ["sun", "dust", "sun"], "Oslo": ["snow", "clouds", "sun"]}


class Forecast(BaseModel):
    """Tells the sky over a city, day by day."""

    city: Literal["Bergen", "Cairo", "Oslo"]
    days: int = Field(default=3, ge=1, le=3)

    async def run(self, ctx: Context) -> mcp.CallToolResult:
        skies = SKIES[self.city][: self.days]
        for day, sky in enumerate(skies, 1):
            await ctx.progress(day, len(skies), f"day {day}: {sky}")
        text = mcp.TextContent(text=f"{self.city}: {', '.join(skies)}")
        return mcp.CallToolResult(content=[text], structured_content={"city": self.city, "skies": skies})


class AwaitSun(BaseModel):
    """Answers as soon as the sun comes out, which may take an hour."""

    async def run(self, ctx: Context) -> mcp.CallToolResult:
        await anyio.sleep(3600)
        return mcp.CallToolResult(content=[mcp.TextContent(text="There it is!")])


TOOLS: dict[str, type[Forecast | AwaitSun]] = {"forecast": Forecast, "await_sun": AwaitSun}


class Weather(Server):
    """Offers the tools; their schemas are those of the classes above."""

    info = mcp.Implementation(name="weather", version="1.0.0")

    async def list_tools(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListToolsResult:
        schemas = {name: mcp.ToolInputSchema.model_validate(kind.model_json_schema()) for name, kind in TOOLS.items()}
        tools = [mcp.Tool(name=name, description=TOOLS[name].__doc__, input_schema=schemas[name]) for name in TOOLS]
        return mcp.ListToolsResult(tools=tools)

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        if params.name not in TOOLS:
            raise InvalidParams("tools/call", [{"path": "params.name", "problem": f"no tool {params.name!r}"}])
        try:
            return await TOOLS[params.name].model_validate(params.arguments or {}).run(ctx)
        except ValidationError as error:  # for the model to read and to do better
            return mcp.CallToolResult(content=[mcp.TextContent(text=error.errors()[0]["msg"])], is_error=True)

    async def list_resources(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListResourcesResult:
        return mcp.ListResourcesResult(resources=[mcp.Resource(name="cities", uri="weather://cities")])

    async def read_resource(self, params: mcp.ReadResourceRequestParams, ctx: Context) -> mcp.ReadResourceResult:
        return mcp.ReadResourceResult(contents=[mcp.TextResourceContents(uri=params.uri, text="\n".join(SKIES))])

    async def list_prompts(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListPromptsResult:
        return mcp.ListPromptsResult(prompts=[mcp.Prompt(name="pack", description="What to take along.")])

    async def get_prompt(self, params: mcp.GetPromptRequestParams, ctx: Context) -> mcp.GetPromptResult:
        question = mcp.TextContent(text="Look at the forecast for Oslo. What do I pack?")
        return mcp.GetPromptResult(messages=[mcp.PromptMessage(role="user", content=question)])


if __name__ == "__main__":
    run(Weather())
