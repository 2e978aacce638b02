"""Roll dice, on a board that hosts show to people (MCP Apps): `python examples/apps_server.py`."""

import secrets
from pathlib import Path
from typing import Annotated

from pydantic import Field

from mcp_bindgen.app import App, run

BOARD = "ui://dice/board"
app = App("dice", version="1.0.0", instructions="Roll dice; people see them on a board, where they can roll again.")
rolls: list[int] = []


@app.tool(ui=BOARD)
async def roll(sides: Annotated[int, Field(ge=2, le=100)] = 6) -> int:
    """Roll a die."""
    rolls.append(1 + secrets.randbelow(sides))
    return rolls[-1]


@app.tool(ui=BOARD, visibility=["app"])
async def history() -> list[int]:
    """List the rolls so far: the board asks, models need not."""
    return rolls


@app.ui(BOARD, title="Dice", prefers_border=True)
async def board() -> str:
    """Show the die that was rolled last, and those before it."""
    return (Path(__file__).parent / "apps" / "board.html").read_text("utf-8")


if __name__ == "__main__":
    run(app)
