"""Server of the small contract: `python -m tests.app.weather`."""

from __future__ import annotations

from mcp_bindgen import app
from mcp_bindgen.runtime import run
from tests.app.weather import models
from tests.app.weather.base import Context, ForecastContract


class Forecast(ForecastContract):
    """Server that knows one city."""

    async def get_forecast(self, arguments: models.GetForecastInput, ctx: Context) -> models.GetForecastOutput:
        if arguments.city != "Oslo":
            raise app.ToolError(f"nobody knows {arguments.city}")
        return models.GetForecastOutput(summary="snow", temperatures=[-3] * arguments.days)


if __name__ == "__main__":
    run(Forecast())
