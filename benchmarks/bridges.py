"""Measure what conversions cost: a server of one revision for clients of another, next to a native one of that.

Both answer the same bytes in the same process, one round after the other; the figures are processor time and its
ratios within each round. A row says what the chain of steps has for the method: nothing, a guard that does not fire,
or a conversion. `start` is the time of a fresh interpreter until it serves, and until a first client is answered.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import anyio
from rounds import Found, in_turn

from mcp_bindgen.bridging.chain import chain
from mcp_bindgen.runtime import Server
from mcp_bindgen.runtime.protocol.transport import Transport
from mcp_bindgen.runtime.session.endpoint import Endpoint

CALLS = 2000
AT_ONCE = 20  # messages that come together
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
PAIRS = [("2025-11-25", wire) for wire in REVISIONS] + [
    ("2026-07-28", "2025-11-25"),
    ("2026-07-28", "2024-11-05"),
    ("2024-11-05", "2025-11-25"),
    ("2024-11-05", "2026-07-28"),
]
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "text": ("tools/call", {"name": "text", "arguments": {"city": "Oslo"}}),
    "audio": ("tools/call", {"name": "audio", "arguments": {}}),
    "list": ("tools/list", {}),
    "read": ("resources/read", {"uri": "note:///a"}),
}
META = "io.modelcontextprotocol/"
START = """
import json, sys, time
began = time.perf_counter()
sys.argv = sys.argv[:1]
from mcp_bindgen.{package} import Server, types as mcp
from mcp_bindgen.runtime.protocol.transport import Transport
from mcp_bindgen.runtime.session.endpoint import Endpoint
class Plain(Server):
    info = mcp.Implementation(name="x", version="1")
service = Endpoint([Plain()], revisions={revisions})
session = service.session(type("Nowhere", (Transport,), {{}})())
served = time.perf_counter() - began
params = {{"protocolVersion": "{wire}", "capabilities": {{}}, "clientInfo": {{"name": "x", "version": "1"}}}}
message = {{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}}
(asked,) = session.connection.read(json.dumps(message).encode())
service.handler(asked.dispatcher, asked.route)(session, 1, asked.params)
print(json.dumps([served, time.perf_counter() - began]))
"""


def server(revision: str) -> Server:
    """Return a server of a revision."""
    package: Any = import_module(f"mcp_bindgen.v{revision.replace('-', '_')}")
    mcp = package.types
    texts = [mcp.TextContent(text="snow, clouds, sun")]
    has_audio = hasattr(mcp, "AudioContent")
    sounds = [mcp.AudioContent(data="UklGRg==" * 20, mime_type="audio/wav")] if has_audio else texts

    class Plain(package.Server):  # type: ignore[misc]
        info = mcp.Implementation(name="bench", version="1")

        async def call_tool(self, params: Any, ctx: Any) -> Any:
            return mcp.CallToolResult(content=sounds if params.name == "audio" else texts)

        async def list_tools(self, params: Any, ctx: Any) -> Any:
            schema = mcp.ToolInputSchema(properties={"city": {"type": "string"}}, required=["city"])
            return mcp.ListToolsResult(
                tools=[mcp.Tool(name=f"t{n}", description="A tool.", input_schema=schema) for n in range(10)]
            )

        async def read_resource(self, params: Any, ctx: Any) -> Any:
            text = mcp.TextResourceContents(uri=params.uri, text="A note.")
            return mcp.ReadResourceResult(contents=[text])

        async def list_resources(self, params: Any, ctx: Any) -> Any:
            return mcp.ListResourcesResult(resources=[])

    found: Server = Plain()
    return found


class Flood(Transport):
    """A transport from which the same request comes again and again, and to which nobody listens."""

    def __init__(self, opening: Sequence[bytes], messages: Sequence[bytes]) -> None:
        self._opening = list(opening)
        self._messages = list(messages)
        self.began = 0.0

    async def receive(self) -> Sequence[bytes]:
        if self._opening:
            return [self._opening.pop(0)]
        self.began = self.began or time.process_time()
        taken, self._messages = self._messages[:AT_ONCE], self._messages[AT_ONCE:]
        return taken

    async def send(self, messages: Sequence[bytes]) -> None:
        for message in messages:
            assert b'"result"' in message[:200], message

    async def close(self) -> None:
        pass


def spoken(wire: str, method: str, params: dict[str, Any]) -> tuple[list[bytes], list[bytes]]:
    """Return the messages of a client: what it begins with, and its calls."""
    info = {"name": "bench", "version": "1"}
    opening: list[Any] = []
    if wire == "2026-07-28":
        meta = {f"{META}protocolVersion": wire, f"{META}clientInfo": info, f"{META}clientCapabilities": {}}
        params = {"_meta": meta, **params}
    else:
        begin = {"protocolVersion": wire, "capabilities": {}, "clientInfo": info}
        opening.append({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin})
        opening.append({"jsonrpc": "2.0", "method": "notifications/initialized"})
    calls = [{"jsonrpc": "2.0", "id": n, "method": method, "params": params} for n in range(1, CALLS + 1)]
    return [_compact(one) for one in opening], [_compact(one) for one in calls]


def _compact(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def cost(service: Endpoint, opening: Sequence[bytes], calls: Sequence[bytes]) -> tuple[float]:
    """Return the processor time of a call in microseconds."""
    flood = Flood(opening, calls)
    anyio.run(service.run, service.session(flood))
    return ((time.process_time() - flood.began) / CALLS * 1e6,)


def kind(home: str, wire: str, case: str) -> str:
    """Say what the chain has for the method, as far as the result goes."""
    if home == wire:
        return "native"
    there, back = chain(wire, home), chain(home, wire)
    assert there is not None
    assert back is not None
    method = CASES[case][0]
    result = back.results(method)
    if result is None:
        return "no row" if there.params(method) is None else "guard of params"
    sounds = b'"type":"audio"' if case == "audio" else b'"type":"text"'
    return "converted" if not result.prefilter or any(needle in sounds for needle in result.prefilter) else "guard"


def started(home: str, wire: str, revisions: Sequence[str]) -> tuple[float, float]:
    """Return the milliseconds until a fresh interpreter serves, and until it has answered a client."""
    code = START.format(package=f"v{home.replace('-', '_')}", revisions=list(revisions), wire=wire)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    served, answered = json.loads(done.stdout)
    return served * 1e3, answered * 1e3


def main() -> None:
    """Print a line for each pair of revisions and each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print(f"{'server':12}{'client':12}{'case':7}{'chain':18}{'native us':>10}{'us':>8}{'ratio':>7}")
    for home, wire in PAIRS:
        if home == wire:
            continue
        native, bridged = Endpoint([server(wire)], revisions=[wire]), Endpoint([server(home)], revisions=[wire])
        for case, (method, params) in CASES.items():
            said = spoken(wire, method, params)
            found: Found = in_turn(
                rounds,
                {"native": lambda: cost(native, *said), "bridged": lambda: cost(bridged, *said)},  # noqa: B023
            )
            first, second = ([one for (one,) in found[name]] for name in ("native", "bridged"))
            ratio = statistics.median(b / a for a, b in zip(first, second, strict=True))
            print(
                f"{home:12}{wire:12}{case:7}{kind(home, wire, case):18}"
                f"{statistics.median(first):10.1f}{statistics.median(second):8.1f}{ratio:7.2f}"
            )
    print("start, ms                            serves  answers")
    for name, wire, revisions in (
        ("own revision alone", "2025-11-25", ["2025-11-25"]),
        ("all, asked in its own", "2025-11-25", REVISIONS),
        ("all, asked in an older one", "2025-06-18", REVISIONS),
        ("all, asked in the oldest", "2024-11-05", REVISIONS),
    ):
        taken = [started("2025-11-25", wire, revisions) for _ in range(rounds)]
        serves, answers = (statistics.median(each) for each in zip(*taken, strict=True))
        print(f"{name:35}{serves:8.0f}{answers:9.0f}")


if __name__ == "__main__":
    main()
