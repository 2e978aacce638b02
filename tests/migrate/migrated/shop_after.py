"""Server of a shop that sells books."""

from __future__ import annotations

from mcp_bindgen.runtime import ProtocolError
from mcp_bindgen.v2026_07_28 import Context, Server, errors
from mcp_bindgen.v2026_07_28 import types as mcp

PRICES = {"Emma": 9, "Ulysses": 12}


class Till:
    """Charges and notes of the shop."""

    def __init__(self) -> None:
        self.charged: list[int] = []
        self.log: list[str] = []

    def charge(self, amount: int) -> None:
        self.charged.append(amount)


def text(words: str) -> mcp.CallToolResult:
    return mcp.CallToolResult(content=[mcp.TextContent(text=words)])


class Shop(Server):
    """Server that sells books after a question."""

    info = mcp.Implementation(name="shop", version="1.0.0")

    def __init__(self) -> None:
        super().__init__()
        self.till = Till()

    # --- tools ------------------------------------------------------------------------------------------------

    def list_tools(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListToolsResult:
        title = mcp.ToolInputSchema(properties={"title": {"type": "string"}}, required=["title"])
        price = mcp.ToolOutputSchema(properties={"price": {"type": "integer"}}, required=["price"])
        return mcp.ListToolsResult(
            tools=[
                mcp.Tool(name="buy", description="Buy a book.", input_schema=title),
                mcp.Tool(name="price", description="What a book costs.", input_schema=title, output_schema=price),
                mcp.Tool(name="review", input_schema=title),
                mcp.Tool(name="where", input_schema=mcp.ToolInputSchema()),
            ]
        )

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        title = str((params.arguments or {}).get("title", ""))
        match params.name:
            case "buy":
                return await self.buy(title, ctx)
            case "price":
                return mcp.CallToolResult(content=[], structured_content={"price": PRICES[title]})
            case "review":
                return await self.review(title, ctx)
            case _:
                return await self.where(ctx)

    async def buy(self, title: str, ctx: Context) -> mcp.CallToolResult:
        price = PRICES[title]
        form = mcp.ElicitRequestFormParams(
            message=f"Buy {title} for {price}?",
            requested_schema=mcp.ElicitRequestFormParamsRequestedSchema(properties={"sure": mcp.BooleanSchema()}),
        )
        answer = await ctx.ask_params("sure", form)
        if answer.action != "accept":
            return text("not bought")
        self.till.charge(price)
        return text(f"bought {title}")

    async def review(self, title: str, ctx: Context) -> mcp.CallToolResult:
        answer = await ctx.sample(f"Praise {title}.", max_tokens=100)
        self.till.log.append(title)
        return text(answer)

    async def where(self, ctx: Context) -> mcp.CallToolResult:
        return text(", ".join(root.uri for root in await ctx.roots()))

    # --- resources --------------------------------------------------------------------------------------------

    def list_resources(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListResourcesResult:
        return mcp.ListResourcesResult(resources=[mcp.Resource(uri=f"book://{name}", name=name) for name in PRICES])

    def read_resource(self, params: mcp.ReadResourceRequestParams, ctx: Context) -> mcp.ReadResourceResult:
        name = params.uri.removeprefix("book://")
        if name not in PRICES:
            raise ProtocolError(errors.INVALID_PARAMS, "no such book")
        return mcp.ReadResourceResult(contents=[mcp.TextResourceContents(uri=params.uri, text=str(PRICES[name]))])

    # --- everything else --------------------------------------------------------------------------------------

    def on_cancelled(self, params: mcp.CancelledNotificationParams, ctx: Context) -> None:
        self.till.log.append(f"cancelled {params.request_id}")
