"""Contract in one revision, with one tool."""

from abc import abstractmethod
from typing import TypeAlias

from mcp_bindgen import v2025_11_25
from mcp_bindgen.app import Catalog, Contract, tool
from tests.app.weather import models

Context: TypeAlias = v2025_11_25.Context
CallToolResult: TypeAlias = v2025_11_25.types.CallToolResult


class ForecastContract(Contract):
    """Contract of the server `forecast`."""

    catalog = Catalog.beside(__file__, "forecast.json")
    revisions = (v2025_11_25,)

    @tool("get-forecast", models.GetForecastInput, models.GetForecastOutput)
    @abstractmethod
    async def get_forecast(
        self, arguments: models.GetForecastInput, ctx: Context
    ) -> models.GetForecastOutput | CallToolResult:
        """Return the forecast."""
        raise NotImplementedError
