"""Time that `mcp-bindgen gateway` adds to a call: interleaved calls to servers, directly and through the gateway.

On a busy machine the processor time of the gateway says more than the added time, most of which is the wait for a
processor. Linux only.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio

from mcp_bindgen.runtime import connect
from mcp_bindgen.v2026_07_28 import Client
from tap import CASES

WARM_UP = 20
COMMAND = str(Path(sys.executable).with_name("mcp-bindgen"))


def processor_ms(pid: int) -> float:
    """Return the processor time of a process, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measured(name: str, calls: int) -> tuple[float, float, float]:
    """Return milliseconds: the medians of a direct call and of one through the gateway, and its processor time."""
    command, tool, arguments, _ = CASES[name]
    ways = (command, [COMMAND, "gateway", shlex.join(command)])
    taken: tuple[list[float], list[float]] = ([], [])
    async with AsyncExitStack() as stack:
        silent = subprocess.DEVNULL
        direct = await stack.enter_async_context(connect(ways[0], stderr=silent))
        behind = await stack.enter_async_context(connect(ways[1], Client, exactly=True, stderr=silent))
        transport: Any = behind.link.transport
        pid, used = transport.process.pid, 0.0
        for number in range(calls + WARM_UP):
            if number == WARM_UP:
                used = processor_ms(pid)
            for client, times in zip((direct, behind), taken, strict=True):
                began = time.perf_counter()
                await client.call_tool(tool, arguments)
                if number >= WARM_UP:
                    times.append(1000 * (time.perf_counter() - began))
        used = (processor_ms(pid) - used) / calls
    one, other = map(statistics.median, taken)
    return one, other, used


def main() -> None:
    """Print the medians, their difference and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=500)
    given = parser.parse_args()
    for name in (name for name, case in CASES.items() if not case.is_http):
        one, other, used = anyio.run(measured, name, given.calls)
        shown = f"direct {one:6.2f} ms  gateway {other:6.2f} ms  added {other - one:6.2f} ms  ratio {other / one:.2f}"
        shown += f"  processor time of the gateway {used:.2f} ms"
        print(f"{name:20} {shown}", flush=True)


if __name__ == "__main__":
    main()
