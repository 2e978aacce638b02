"""Hold the notes server of the examples beside the same with the official SDK and with FastMCP, as a table.

    python benchmarks/notes_servers.py [--fastmcp PYTHON] [--write]

FastMCP is not among our dependencies: PYTHON is an interpreter that has it. `--write` puts the table into
docs/tutorials/python-first.md.
"""

import argparse
import os
import resource
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from mcp_bindgen.runtime import ProtocolError, connect
from mcp_bindgen.runtime.bindings import installed
from mcp_bindgen.runtime.transports.stdio import stdio

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorials" / "python-first.md"
BEGIN, END = "<!-- made by benchmarks/notes_servers.py -->", "<!-- end -->"
STARTS = 7


@dataclass(frozen=True)
class Peer:
    """A notes server.

    Attributes:
        name: What it is made with.
        file: Its only file.
        python: The interpreter that runs it.
    """

    name: str
    file: Path
    python: str = sys.executable

    def lines(self) -> int:
        """Return how many lines the file has, without comments for type checkers."""
        return sum(not line.startswith(("# mypy:", "# pyright:")) for line in self.file.read_text("utf-8").splitlines())

    def transport(self) -> Any:
        """Start it."""
        return stdio(self.python, str(self.file), env={**os.environ}, stderr=-3)


async def start(peer: Peer) -> float:
    """Return the milliseconds of processor time of a process that starts, lists its tools and ends."""
    before = spent()
    async with peer.transport() as transport, connect(transport) as client:
        await client.list_tools()
    return (spent() - before) * 1000


def spent() -> float:
    """Return the seconds of processor time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def revisions(peer: Peer) -> list[str]:
    """Return the revisions that it serves."""
    found: list[str] = []
    for package in installed():
        try:
            async with peer.transport() as transport, connect(transport, package.Client) as client:
                found.append(client.revision)
        except Exception:
            continue
    return found


async def outcome(client: Any, name: str, arguments: dict[str, Any]) -> str:
    """Return what becomes of a call, in a few words."""
    try:
        result = await client.call_tool(name, arguments)
    except ProtocolError as error:
        return f"error: {error.message}"
    texts = [str(block.text) for block in result.content if block.type == "text"]
    return ("isError: " if result.is_error else "taken: ") + " ".join(texts).partition("\n")[0]


async def row(peer: Peer) -> dict[str, str]:
    """Measure a server."""
    times = [await start(peer) for _ in range(STARTS)]
    served = await revisions(peer)
    async with peer.transport() as transport, connect(transport) as client:
        note = {"id": "1", "text": "x", "tags": "none"}
        return {
            "lines of its one file": str(peer.lines()),
            "processor time to the list of tools": f"{statistics.median(times):.0f} ms",
            "revisions": f"{len(served)}, {served[0]} to {served[-1]}",
            "a number where a text is wanted": await outcome(client, "find", {"words": 7}),
            "a wrong list inside of an object": await outcome(client, "add", {"note": note}),
            "a misspelt tool": await outcome(client, "raed", {"id": "1"}),
            "a note that is not there": await outcome(client, "read", {"id": "1"}),
        }


def table(rows: dict[str, dict[str, str]]) -> Iterator[str]:
    """Return the lines of a Markdown table, a column for each server."""
    yield "| | " + " | ".join(rows) + " |"
    yield "| --- |" + " --- |" * len(rows)
    for name in next(iter(rows.values())):
        cells = [cut(one[name]) for one in rows.values()]
        yield f"| {name} | " + " | ".join(cells) + " |"


def cut(text: str) -> str:
    """Return a text that fits into a cell."""
    short = text if len(text) <= 90 else f"{text[:87]}..."
    return short.replace("|", "\\|")


async def main() -> None:
    """Measure all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fastmcp", metavar="PYTHON", help="an interpreter that has FastMCP")
    parser.add_argument("--write", action="store_true", help="put the table into the docs")
    chosen = parser.parse_args()
    peers = [Peer("mcp-bindgen", ROOT / "examples/notes.py"), Peer("mcp", ROOT / "benchmarks/peers/notes_mcp.py")]
    if chosen.fastmcp:
        peers.append(Peer("FastMCP", ROOT / "benchmarks/peers/notes_fastmcp.py", chosen.fastmcp))
    text = "\n".join(table({peer.name: await row(peer) for peer in peers}))
    print(text)
    if chosen.write:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    anyio.run(main)
