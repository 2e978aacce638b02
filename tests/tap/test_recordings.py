"""`mcp-bindgen tap serve` and `tap replay`: a recording takes the place of a server or of a client."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_bindgen.mock import ReplayServer
from mcp_bindgen.tap import Trace, TracedMessage
from mcp_bindgen.tap.comparison import Comparison
from mcp_bindgen.tap.recording import Matching, Recording, recording_of
from mcp_bindgen.v2025_11_25 import Client
from tests.harness.checked_connections import INITIALIZED, answer, notification, request
from tests.harness.commands import COMMAND, PATIENCE, complaint, execute, inside
from tests.harness.file_server import serving
from tests.harness.forks import INSTALLED, PYTHON
from tests.harness.taps import tapped
from tests.interop.everything import EVERYTHING, FILESYSTEM
from tests.interop.processes import NODE_SERVER, SDK_SERVER, free_port, listening, needed, node

pytest_plugins = ["mcp_bindgen.mock.fixtures"]

CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
INITIALIZE: dict[str, Any] = request(0, "initialize", CLIENT)
SERVER = {"name": "s", "version": "1"}
SERVER_INFO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": SERVER}


def call(number: int, name: str, token: int | None = None, **arguments: Any) -> dict[str, Any]:
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return request(number, "tools/call", {"name": name, "arguments": arguments, **meta})


def result(number: int, text: str) -> dict[str, Any]:
    return answer(number, {"content": [{"type": "text", "text": text}]})


def progress(token: int) -> dict[str, Any]:
    return notification("notifications/progress", {"progressToken": token, "progress": 1})


ASK, ROOTS = request(1, "roots/list"), answer(1, {"roots": []})
LINES: Sequence[tuple[str, dict[str, Any]]] = (
    ("client", INITIALIZE),
    ("server", answer(0, SERVER_INFO)),
    ("client", INITIALIZED),
    ("client", call(1, "a", 11, x=1)),
    ("client", call(2, "b")),
    ("server", progress(11)),
    ("server", ASK),
    ("client", ROOTS),
    ("server", result(2, "b")),
    ("server", result(1, "first")),
    ("client", call(3, "a", x=1.0)),
    ("server", result(3, "second")),
    ("client", call(4, "login", password="S3CRET")),
    ("server", result(4, "in")),
    ("client", call(5, "cut")),
)


def trace(lines: Sequence[tuple[str, dict[str, Any]]] = LINES) -> list[TracedMessage]:
    seen = list[TracedMessage]()
    made = Trace(seen.append)
    for sender, message in lines:
        made.record("client" if sender == "client" else "server", json.dumps(message).encode())
    return seen


def recorded(path: Path, lines: Sequence[tuple[str, dict[str, Any]]] = LINES) -> Path:
    file = path / "trace.jsonl"
    file.write_text("".join(f"{json.dumps(one.document())}\n" for one in trace(lines)), "utf-8")
    return file


# --- serve ----------------------------------------------------------------------------------------------------


def served(file: Path, *messages: dict[str, Any], silent: int = 0) -> list[dict[str, Any]]:
    """Send messages to `tap serve`; return the line that follows each of them, and `silent` more lines."""
    with subprocess.Popen(
        [COMMAND, "tap", "serve", file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        found = list[dict[str, Any]]()
        for message in messages:
            process.stdin.write(f"{json.dumps(message)}\n".encode())
            process.stdin.flush()
            found.append(json.loads(process.stdout.readline()))
        found += [json.loads(process.stdout.readline()) for _ in range(silent)]
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.wait(PATIENCE) == 0
    return found


def test_client_info_and_secrets_do_not_affect_matching(tmp_path: Path) -> None:
    hello = request("x", "initialize", {**CLIENT, "clientInfo": {"name": "b", "version": "2"}})
    found = served(recorded(tmp_path), hello, call(8, "login", password="OTHER"))
    by = {one["id"]: one["result"] for one in found}
    assert by == {"x": SERVER_INFO, 8: result(4, "in")["result"]}


@pytest.mark.full
def test_server_messages_are_replayed_at_their_recorded_position(tmp_path: Path) -> None:
    """The client chooses the token; the response comes after the client has answered the server's request."""
    found = served(recorded(tmp_path), call(1, "b"), {**ROOTS, "id": "recorded-1"})
    assert [one.get("method") or one["result"] for one in found] == ["roots/list", result(1, "b")["result"]]
    found = served(recorded(tmp_path), call(2, "a", 5, x=1), silent=1)
    assert found == [progress(5), result(2, "first")]


def test_equal_requests_get_the_recorded_answers_in_turn(tmp_path: Path) -> None:
    """Without a token there is no progress; the last response is repeated."""
    found = served(recorded(tmp_path), *(call(number, "a", x=1) for number in (1, 2, 3)))
    assert {one["id"]: one["result"]["content"][0]["text"] for one in found} == {1: "first", 2: "second", 3: "second"}


async def test_the_replay_fixture_serves_a_recording(mcp_replay: Callable[..., ReplayServer], tmp_path: Path) -> None:
    async with Client.connect(mcp_replay(recorded(tmp_path)).command) as client:
        assert (await client.call_tool("a", {"x": 1})).model_dump()["content"][0]["text"] == "first"


UNMATCHED = (
    (call(1, "a", x=2), -32602, 'the nearest is line 4: tools/call {"name": "a", "arguments": {"x": 1}}'),
    (request(1, "tools/list"), -32601, "it has initialize, tools/call"),
    (request(1, "x"), -32601, "it has initialize, tools/call"),
    (call(1, "cut"), -32603, "no response to line 15"),
    (request(1, "ping"), None, ""),
    ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, -32600, "2.0"),
)


def test_requests_without_a_recorded_match_get_a_clear_error(tmp_path: Path) -> None:
    found = served(recorded(tmp_path), *(message for message, _, _ in UNMATCHED))
    for (_, code, words), one in zip(UNMATCHED, found, strict=True):
        assert one.get("error", {}).get("code") == code
        assert words in one.get("error", {}).get("message", "")


@pytest.mark.full
def test_a_hostile_request_gets_an_error_and_the_replay_server_continues(tmp_path: Path) -> None:
    deep = json.loads("[" * 150 + "]" * 150)
    found = served(recorded(tmp_path), call(1, "a", x=deep), request(2, "ping"))
    assert "nested deeper" in found[0]["error"]["message"]
    assert found[1] == answer(2, {})


@pytest.mark.parametrize(
    "text", ["no JSON\n", "[]\n", '{"sender": "x"}\n', '{"sender": "client", "kind": "request"}\n']
)
def test_a_file_that_is_not_a_recording_is_reported_in_one_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text(text, "utf-8")
    for words in (["serve", file], ["replay", file, "cat"]):
        assert "line 1" in complaint("tap", *words)
    complaint("tap", "serve", tmp_path / "none")


# --- comparison -----------------------------------------------------------------------------------------------

PAIR = {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}
SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"n": {"type": "integer"}, "pair": PAIR},
    "required": ["n"],
}
TOOL: dict[str, Any] = {
    "name": "t",
    "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
    "outputSchema": SCHEMA,
}
STRICTER = {**TOOL, "inputSchema": {**TOOL["inputSchema"], "required": ["a"]}}
LIST = request(1, "tools/list")


def structured(value: Any) -> dict[str, Any]:
    return {"structuredContent": value, "content": [{"type": "text", "text": json.dumps(value)}]}


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "equal": ({"content": [], "n": 1.0}, {"n": 1, "content": []}, "same", ""),
    "ignored": ({"at": {"t": 1}}, {"at": {"t": 2}}, "same", ""),
    "redacted": ({"token": "[redacted]"}, {"token": "S3CRET"}, "same", ""),
    "text": ({"content": [{"text": "a"}]}, {"content": [{"text": "b"}]}, "different", '/0/text: was "a", is "b"'),
    "absent": ({"content": [], "isError": True}, {"content": []}, "different", "/result/isError: was true, is absent"),
    "fits": (structured({"n": 1}), structured({"n": 2}), "fits", "/result/structuredContent/n: was 1, is 2"),
    "tuple": (structured({"n": 1, "pair": [1]}), structured({"n": 1, "pair": [2]}), "fits", "/pair/0: was 1, is 2"),
    "does not fit": (structured({"n": 1}), structured({"n": "2"}), "different", "/result/structuredContent/n"),
    "other text": (structured({"n": 1}), {**structured({"n": 2}), "content": []}, "different", "/result/content"),
    "cursor": ({"content": [], "nextCursor": "x"}, {"content": [], "nextCursor": "y"}, "same", ""),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_compared_by_value_and_structured_content_by_schema(name: str) -> None:
    old, new, verdict, words = CASES[name]

    def exchanges(value: dict[str, Any]) -> Recording:
        lines = [("client", LIST), ("server", answer(1, {"tools": [TOOL]})), ("client", call(2, "t"))]
        return recording_of(trace([*lines, ("server", answer(2, value))]))

    recording, live = exchanges(old), exchanges(new)
    found = Comparison(recording.exchanges, ["/at/*"]).compare(recording.exchanges[1], live.exchanges[1])
    assert found.verdict == verdict
    assert words in "".join(map(str, found.differences))


def test_a_reference_in_a_recorded_schema_is_not_fetched() -> None:
    with serving() as server:
        tool = {**TOOL, "outputSchema": {"$ref": server.file("/schema.json", b"{}")}}
        lines = [("client", LIST), ("server", answer(1, {"tools": [tool]})), ("client", call(2, "t"))]
        results = (answer(2, structured({"n": n})) for n in (1, 2))
        old, new = (recording_of(trace([*lines, ("server", one)])).exchanges for one in results)
        assert Comparison(old).compare(old[1], new[1]).verdict == "different"
    assert server.asked == []


def test_lists_are_compared_as_contracts() -> None:
    other = {**TOOL, "name": "u"}
    for old, new, words in (
        ([TOOL, other], [other, TOOL], ""),
        ([TOOL], [STRICTER], "breaking: tool t refuses arguments that were valid: argument a"),
        ([TOOL], [{**TOOL, "icons": []}], "text: tool t: icons changed"),
        ([TOOL], [{**TOOL, "x": 1}], "text: tool t: x changed"),
    ):
        (before,), (now,) = (
            recording_of(trace([("client", LIST), ("server", answer(1, {"tools": tools}))])).exchanges
            for tools in (old, new)
        )
        found = Comparison([before]).compare(before, now)
        assert found.verdict == ("different" if words else "same")
        assert words in "".join(map(str, found.differences))


def test_matching_does_not_depend_on_order_of_members() -> None:
    matching = Matching(recording_of(trace()).exchanges)
    found = [matching.find("tools/call", {"arguments": {"x": x}, "name": "a"}) for x in (1, 1.0, 1)]
    assert [one.line for one in found if one is not None] == [4, 11, 11]


# --- replay ---------------------------------------------------------------------------------------------------

SHOP = """from mcp_bindgen.app import App
app = App("shop")

@app.tool
def add(a: int, b: int) -> int:
    '''Add two numbers.'''
    return a + b

@app.tool
def greet(name: str) -> str:
    '''Greet.'''
    return "hello " + name
"""


@pytest.mark.full
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_replay_reports_changed_results_and_breaking_changes(revision: str, tmp_path: Path) -> None:
    out, old, new = (tmp_path / name for name in ("trace.jsonl", "shop.py", "shop2.py"))
    old.write_text(SHOP, "utf-8")
    new.write_text(SHOP.replace("hello", "bye").replace("name: str", "name: str, loud: bool"), "utf-8")
    server = f"{COMMAND} tap --out {out} -- {PYTHON} -m mcp_bindgen.app {old}"
    assert inside("call", server, "tools/list", "--revision", revision).returncode == 0
    first = out.read_bytes()
    inside("call", server, "tools/call", "greet", '{"name": "Ada"}', "--revision", revision)
    out.write_bytes(first + out.read_bytes())
    assert inside("tap", "replay", out, old).returncode == 0
    assert (
        "breaking: tool greet refuses arguments that were valid: argument loud"
        in inside("tap", "replay", out, new, code=1).stdout
    )
    document = json.loads(inside("tap", "replay", out, new, "--json").stdout)
    assert document["different"] == 2
    assert {one["verdict"] for one in document["requests"]} == {"same", "different"}


def test_bad_replay_options_are_reported_in_one_line(tmp_path: Path) -> None:
    file = recorded(tmp_path)
    for words in (["--ignore", "x"], ["--revision", "1999"], []):
        complaint("tap", "replay", file, "/no/such/program", *words)
    (tmp_path / "empty.jsonl").touch()
    said = complaint("tap", "replay", tmp_path / "empty.jsonl", "/no/such/program")
    assert said.endswith("names no revision; state one with --revision")


# --- ten recordings -------------------------------------------------------------------------------------------

TEN: dict[str, tuple[list[str], str, tuple[tuple[str, dict[str, Any]], ...]]] = {
    "time": ([str(INSTALLED.with_name("mcp-server-time"))], "", (("convert_time", {}),)),
    "everything": ([node(), EVERYTHING, "stdio"], "", (("echo", {"message": "hi"}), ("get-sum", {"a": 1, "b": 2}))),
    "everything resources": ([node(), EVERYTHING, "stdio"], "", (("get-resource-links", {"count": 3}),)),
    "filesystem": ([node(), FILESYSTEM, "FOLDER"], "", (("list_directory", {"path": "FOLDER"}), ("nothing", {}))),
    "python": ([*SDK_SERVER], "", (("echo", {"text": "hi"}), ("count", {"steps": 3}), ("fail", {}))),
    "python kinds": ([*SDK_SERVER], "", (("kinds", {}), ("add", {"a": 1, "b": 2}))),
    "node": ([node(), NODE_SERVER], "", (("echo", {"text": "hi"}), ("add", {"a": 1, "b": 2}))),
    "python over HTTP": ([*SDK_SERVER, "--http", "127.0.0.1:PORT"], "/mcp", (("count", {"steps": 2}),)),
    "node over HTTP": ([node(), NODE_SERVER, "--http", "127.0.0.1:PORT"], "/mcp", (("echo", {"text": "hi"}),)),
    "everything over HTTP": ([node(), EVERYTHING, "streamableHttp"], "/mcp", (("echo", {"message": "hi"}),)),
}


OFTEN = ("everything", "node", "python over HTTP")
"""Recordings that each run of the suite replays; `pytest -m slow` replays the other recordings."""


@pytest.mark.full
@pytest.mark.parametrize(
    "name", [name if name in OFTEN else pytest.param(name, marks=pytest.mark.slow) for name in TEN]
)
def test_replays_of_ten_recordings_are_deterministic(name: str, tmp_path: Path) -> None:
    """The served recording responds as the server did: two replays find no difference and print the same."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client

    words, path, calls = TEN[name]
    if words[0] == node():
        needed()
    folder, out = tmp_path / "folder", tmp_path / "trace.jsonl"
    (folder / "sub").mkdir(parents=True)
    calls = tuple((tool, json.loads(json.dumps(given).replace("FOLDER", str(folder)))) for tool, given in calls)
    words = [word.replace("FOLDER", str(folder)) for word in words]

    async def talk(streams: Any) -> None:
        async with ClientSession(*streams) as session:
            await session.initialize()
            await session.list_tools()
            for tool, arguments in calls:
                await session.call_tool(tool, arguments)

    async def record() -> None:
        if not path:
            command = [str(COMMAND), "tap", "--out", str(out), "--", *words]
            async with stdio_client(StdioServerParameters(command=command[0], args=command[1:])) as streams:
                await talk(streams)
            return
        port = free_port()
        command = [word.replace("PORT", str(port)) for word in words]
        async with (
            listening(*command, port=port),
            tapped(f"http://127.0.0.1:{port}{path}", out) as url,
            streamable_http_client(url) as streams,
        ):
            await talk(streams[:2])

    anyio.run(record)
    runs = [execute(COMMAND, "tap", "replay", out, f"{COMMAND} tap serve {out}") for _ in range(2)]
    assert [one.returncode for one in runs] == [0, 0], runs[0].stdout + runs[0].stderr
    assert runs[0].stdout == runs[1].stdout
    assert f"{len(calls) + 2} requests: {len(calls) + 2} same" in runs[0].stdout
    if not path:
        live = [execute(COMMAND, "tap", "replay", out, " ".join(words)) for _ in range(2)]
        assert live[0].stdout == live[1].stdout
        assert [one.returncode for one in live] == [0, 0], live[0].stdout
