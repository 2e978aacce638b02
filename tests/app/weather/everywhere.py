"""The whole contract, in all revisions."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

from mcp_bindgen import v2024_11_05, v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28
from mcp_bindgen.app import Catalog, Contract, prompt, resource, template, tool
from tests.app.weather import models

Context: TypeAlias = (
    v2024_11_05.Context | v2025_03_26.Context | v2025_06_18.Context | v2025_11_25.Context | v2026_07_28.Context
)
CallToolResult: TypeAlias = (
    v2024_11_05.types.CallToolResult
    | v2025_03_26.types.CallToolResult
    | v2025_06_18.types.CallToolResult
    | v2025_11_25.types.CallToolResult
    | v2026_07_28.types.CallToolResult
)
Content: TypeAlias = (
    str
    | Sequence[v2024_11_05.types.CallToolResultContent]
    | Sequence[v2025_03_26.types.CallToolResultContent]
    | Sequence[v2025_06_18.types.ContentBlock]
    | Sequence[v2025_11_25.types.ContentBlock]
    | Sequence[v2026_07_28.types.ContentBlock]
    | CallToolResult
)
Prompted: TypeAlias = str | Sequence[v2025_11_25.types.PromptMessage] | v2025_11_25.types.GetPromptResult
Read: TypeAlias = str | bytes | v2025_11_25.types.ReadResourceResult


class WeatherContract(Contract):
    """Contract of the server `weather`."""

    catalog = Catalog.beside(__file__)
    revisions = (v2024_11_05, v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28)

    @tool("get-forecast", models.GetForecastInput, models.GetForecastOutput)
    @abstractmethod
    async def get_forecast(
        self, arguments: models.GetForecastInput, ctx: Context
    ) -> models.GetForecastOutput | CallToolResult:
        """Return the forecast."""

    @tool("say", models.SayInput)
    @abstractmethod
    async def say(self, arguments: models.SayInput, ctx: Context) -> Content:
        """Return the given content."""

    @tool("who", models.WhoInput)
    @abstractmethod
    async def who(self, arguments: models.WhoInput, ctx: Context) -> Content:
        """Ask the user for their name."""

    @tool("slow", models.SlowInput)
    @abstractmethod
    async def slow(self, arguments: models.SlowInput, ctx: Context) -> Content:
        """Return the kind of thread that runs this tool."""

    @prompt("greeting", models.GreetingArguments)
    @abstractmethod
    async def prompt_greeting(self, arguments: models.GreetingArguments, ctx: Context) -> Prompted:
        """Return a greeting."""

    @prompt("hello")
    @abstractmethod
    async def prompt_hello(self, ctx: Context) -> Prompted:
        """Return a hello."""

    @resource("file:///readme")
    @abstractmethod
    async def read_readme(self, ctx: Context) -> Read:
        """Return the introduction."""

    @resource("file:///logo")
    @abstractmethod
    async def read_logo(self, ctx: Context) -> Read:
        """Return a picture."""

    @resource("note://special")
    @abstractmethod
    async def read_special(self, ctx: Context) -> Read:
        """Return a note with a URI of its own."""

    @template("note://{id}", models.NoteVariables)
    @abstractmethod
    async def read_note(self, arguments: models.NoteVariables, ctx: Context) -> Read:
        """Return a note."""

    @template("note://{+path}", models.DeepVariables)
    @abstractmethod
    async def read_deep(self, arguments: models.DeepVariables, ctx: Context) -> Read:
        """Return a note in a folder."""

    @template("find://{kind}{?q,limit}", models.FindVariables)
    @abstractmethod
    async def read_find(self, arguments: models.FindVariables, ctx: Context) -> Read:
        """Return the results of a search."""
