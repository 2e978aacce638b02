"""Connect to servers of every revision and transport, and to servers that violate the protocol (20 s)."""

from __future__ import annotations

import itertools
import json
import shlex
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_bindgen.app.loading import split
from mcp_bindgen.host import Entry, Host
from mcp_bindgen.host.configuration import entry
from mcp_bindgen.http.server.app import HttpApp
from mcp_bindgen.runtime import (
    ConnectionClosed,
    NoConnection,
    Options,
    ProtocolError,
    RequestTimeout,
    UnsupportedRevision,
    connect,
    connecting,
    serve,
)
from mcp_bindgen.runtime.bindings import installed, installed_revisions
from mcp_bindgen.runtime.connecting import forget
from mcp_bindgen.runtime.protocol.errors import Refused
from mcp_bindgen.runtime.protocol.revision import Dispatcher, facts_of
from mcp_bindgen.runtime.transports.memory import pair
from tests.harness.checked_connections import (
    STATEFUL,
    STATELESS,
    Raw,
    Recording,
    answer,
    bindings,
    bounded,
    notification,
    own,
    refusal,
    request,
    running,
    until,
)
from tests.harness.commands import ROOT, inside
from tests.harness.effort import cases, each
from tests.harness.forks import PYTHON
from tests.harness.scripted_http_server import Heard, Server, serving

REVISIONS = [*STATEFUL, STATELESS]
CLIENTS = [bindings(revision).Client for revision in REVISIONS]
HANDS = ["initialize", "notifications/initialized"]
HANDSHAKE = [*HANDS, "tools/list"]
COMPLETE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
ECHO = [PYTHON, str(ROOT / "benchmarks" / "echo_server.py")]


@pytest.fixture(autouse=True)
def _forgetful() -> Iterator[None]:
    forget()
    yield
    forget()


def server(revision: str) -> Any:
    """Return a server with one tool, which echoes its text."""
    package: Any = bindings(revision)
    mcp = package.types

    class Echo(package.Server):  # type: ignore[misc]
        info = mcp.Implementation(name=f"echo {revision}", version="1")

        async def list_tools(self, params: Any, ctx: Any) -> Any:
            return mcp.ListToolsResult(tools=[mcp.Tool(name="echo", input_schema=mcp.ToolInputSchema())])

        async def call_tool(self, params: Any, ctx: Any) -> Any:
            return mcp.CallToolResult(content=[mcp.TextContent(text=params.arguments["text"])])

    return Echo()


async def works(client: Any) -> None:
    """Check that a connection lists and calls the tool of `server`."""
    assert [tool.name for tool in (await client.list_tools()).tools] == ["echo"]
    assert (await client.call_tool("echo", {"text": "é"})).content[0].text == "é"
    assert client.server_info.name == f"echo {client.wire_revision}"
    assert "tools" in client.server_capabilities


async def unreached(
    connection: AbstractAsyncContextManager[Any], kind: Any = NoConnection, match: str | None = None
) -> Any:
    """Return the error of a connection that fails."""
    with pytest.raises(kind, match=match) as caught:
        async with connection:
            pass
    return caught.value


@asynccontextmanager
async def ends() -> AsyncGenerator[tuple[Any, Any]]:
    """Yield both ends of a connection in memory; close them afterwards."""
    left, right = pair()
    try:
        yield left, right
    finally:
        await left.close()
        await right.close()


# --- our own servers, every combination -----------------------------------------------------------------------


@asynccontextmanager
async def memory(clients: Sequence[Any], *servers: Any, **options: Any) -> AsyncGenerator[tuple[Any, Recording]]:
    """Connect clients to servers in memory; check the clients' messages against the schema."""
    async with ends() as (left, right):
        ours = Recording(left, *[kind.revision for kind in clients])
        async with (
            running(serve(right, *servers, revisions=own(*servers))),
            connect(ours, *clients, exactly=True, **options) as client,
        ):
            yield client, ours
    ours.check()


def expected(ours: Sequence[str], theirs: Sequence[str]) -> str | type[Exception]:
    """Return the revision that must be negotiated, or the type of the error."""
    if STATELESS in ours and STATELESS in theirs:
        return STATELESS
    stateful = [revision for revision in ours if revision != STATELESS]
    served = [revision for revision in theirs if revision != STATELESS]
    if not stateful or not served:
        return UnsupportedRevision
    spoken = stateful[-1] if stateful[-1] in served else served[-1]
    return spoken if spoken in stateful else UnsupportedRevision


@pytest.mark.full
@pytest.mark.parametrize("count", cases(range(1, 6), quick=[1, 5]))
async def test_each_set_of_clients_and_servers_selects_the_expected_revision(count: int) -> None:
    for theirs in itertools.chain.from_iterable(itertools.combinations(REVISIONS, size) for size in range(1, 6)):
        for ours in itertools.combinations(REVISIONS, count):
            outcome = expected(ours, theirs)
            meeting = memory([CLIENTS[REVISIONS.index(revision)] for revision in ours], *map(server, theirs))
            if isinstance(outcome, type):
                error = await unreached(meeting, outcome)
                assert (type(error), "\n" in str(error)) == (outcome, False), (ours, theirs)
                continue
            async with meeting as (client, sent):
                assert client.revision == outcome, (ours, theirs)
                await works(client)
            probes = ["server/discover"] if STATELESS in ours else []
            assert sent.methods() == [*probes, *([] if outcome == STATELESS else HANDS), "tools/list", "tools/call"]


def test_the_table_of_revisions_states_the_facts_of_all_bindings() -> None:
    found = installed()
    assert [package.REVISION.name for package in found] == REVISIONS
    assert [*installed_revisions().values()] == [facts_of(package.REVISION) for package in found]


async def test_all_bindings_that_are_installed_are_used_by_default() -> None:
    assert [kind.revision for kind in connecting.installed()] == REVISIONS
    for revision in REVISIONS:
        async with (
            ends() as (left, right),
            running(serve(right, server(revision), revisions=[revision])),
            connect(left) as client,
        ):
            assert client.revision == revision
            await works(client)


async def test_clients_may_be_objects_and_keep_their_options() -> None:
    old, new = CLIENTS[3](), CLIENTS[4]()
    old.options = Options(timeout=7)
    async with memory([old, new], server("2025-11-25")) as (client, _):
        assert client is old
        assert client.options.timeout == 7


async def test_two_clients_of_one_revision_are_refused() -> None:
    async with ends() as (left, _):
        for clients in ([CLIENTS[4], CLIENTS[4]], [CLIENTS[0], CLIENTS[0]()]):
            await unreached(connect(left, *clients), ValueError, "one for each revision")


async def test_an_error_in_the_block_is_raised_unchanged() -> None:
    cause = KeyError("cause")
    with pytest.raises(LookupError, match="mine") as caught:
        async with memory(CLIENTS, server(STATELESS)):
            raise LookupError("mine") from cause
    assert caught.value.__cause__ is cause
    with anyio.CancelScope() as scope:
        async with memory(CLIENTS, server("2025-06-18")):
            scope.cancel()
            await anyio.sleep(1)
    assert scope.cancelled_caught


# --- scripted servers -----------------------------------------------------------------------------------------


@asynccontextmanager
async def played(
    play: Callable[[Raw], Awaitable[None]], clients: Sequence[Any] = CLIENTS, *, patience: float = 5.0, raw: Any = Raw
) -> AsyncGenerator[tuple[Any, Recording]]:
    """Connect to a server that `play` scripts, until the client closes the connection."""

    async def quietly(end: Raw) -> None:
        try:
            await play(end)
        except AssertionError as error:
            if "closed the connection" not in str(error):
                raise
        except ConnectionClosed:
            pass

    async with ends() as (left, right):
        ours = Recording(left, *[kind.revision for kind in clients])
        found = connect(ours, *clients, probe_timeout=patience, exactly=True)
        async with running(quietly(raw(right))), found as client:
            yield client, ours
    ours.check()


def discovered(*revisions: str, **more: Any) -> dict[str, Any]:
    """Return a result of `server/discover`."""
    return {"supportedVersions": list(revisions), "capabilities": {"tools": {}}, **COMPLETE, **more}


def initialized(revision: str) -> dict[str, Any]:
    """Return a result of `initialize`."""
    return {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": {"name": "raw", "version": "0"}}


def unsupported(id_: object, *revisions: object) -> dict[str, Any]:
    """Return the error of a stateless server that does not support the requested revision."""
    return failing(id_, -32022, {"supported": list(revisions), "requested": "x"})


def failing(id_: object, code: int, data: object = None) -> dict[str, Any]:
    """Return an error with data."""
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": "no", "data": data}}


Reply = Callable[[Any], Any]


def replying(*replies: Reply, then: str | None = None) -> Callable[[Raw], Awaitable[None]]:
    """Return a script that answers the first requests, then finishes a handshake in the revision `then`."""

    async def play(raw: Raw) -> None:
        for reply in replies:
            await raw.send(reply((await raw.receive())["id"]))
        if then is not None:
            await finish(raw, then)

    return play


async def finish(raw: Raw, revision: str, *before: object) -> None:
    """Accept the handshake in a revision and answer one call."""
    asked = await raw.receive()
    assert asked["method"] == "initialize", asked
    await raw.send(*before, answer(asked["id"], initialized(revision)))
    assert (await raw.receive())["method"] == "notifications/initialized"
    while "id" not in (asked := await raw.receive()):
        pass
    await raw.send(answer(asked["id"], {"tools": []}))


def unknown(id_: object) -> dict[str, Any]:
    """Return the error "method not found"."""
    return refusal(id_, -32601)


def version_of(asked: Any) -> Any:
    """Return the revision that a stateless request states in its metadata."""
    return asked["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]


STRANGE: list[Any] = [
    *[lambda id_, code=code: refusal(id_, code) for code in (-32601, -32602, -32600, -32000, -32023, -32019, 0, 400)],
    lambda id_: failing(id_, -32000, {"supported": [STATELESS]}),
    lambda id_: answer(id_, {}),
    lambda id_: answer(id_, {"tools": []}),
    lambda id_: answer(id_, {"supportedVersions": "2026-07-28", "capabilities": {}}),
    lambda id_: answer(id_, []),
    lambda id_: answer(id_, None),
    lambda id_: {"jsonrpc": "2.0", "id": id_, "error": {}},
    lambda id_: {"jsonrpc": "2.0", "id": id_, "error": "unknown method"},
    lambda id_: {"jsonrpc": "2.0", "id": id_, "error": {"code": "-32022", "message": 1}},
]


@each("odd", STRANGE)
async def test_any_other_answer_to_the_probe_starts_a_handshake(odd: Reply) -> None:
    async with played(replying(odd, then="2025-03-26")) as (client, sent):
        assert client.revision == "2025-03-26"
        assert await client.list_tools()
        assert sent.methods() == ["server/discover", *HANDSHAKE]
        assert sent.params("initialize")[0]["protocolVersion"] == "2025-11-25"
        assert set(sent.params("server/discover")[0]["_meta"]) == {
            f"io.modelcontextprotocol/{name}" for name in ("protocolVersion", "clientInfo", "clientCapabilities")
        }


@pytest.mark.full
@given(st.integers(-33000, 1000).filter(lambda code: code not in (-32020, -32021, -32022)))
@settings(max_examples=40, deadline=None)
@bounded()
async def test_any_other_error_code_of_the_probe_starts_a_handshake(code: int) -> None:
    objecting = replying(lambda id_: failing(id_, code, {"supported": ["2026-07-28"]}), then="2025-11-25")
    async with played(objecting) as (client, _):
        await client.list_tools()
        assert client.revision == "2025-11-25"


@pytest.mark.parametrize(
    "refused",
    [
        lambda id_: refusal(id_, -32020),
        lambda id_: failing(id_, -32021, {"requiredCapabilities": {"roots": {}}}),
        lambda id_: refusal(id_, -32022),
        lambda id_: failing(id_, -32022, {"supported": "2026-07-28"}),
        lambda id_: unsupported(id_),
    ],
)
async def test_a_stateless_server_that_refuses_the_probe_gets_no_handshake(refused: Reply) -> None:
    said: list[Any] = []

    async def play(raw: Raw) -> None:
        said.append(await raw.receive())
        await raw.send(refused(said[0]["id"]))

    assert (await unreached(played(play), ProtocolError)).code in (-32020, -32021, -32022)
    assert [asked["method"] for asked in said] == ["server/discover"]


async def test_a_server_without_a_common_revision_is_an_error() -> None:
    unknown_to_us = ("2099-01-01", "2098-01-01")
    for listed, said in (
        (unknown_to_us, lambda id_: unsupported(id_, *unknown_to_us)),
        (("x",), lambda id_: answer(id_, discovered("x"))),
    ):
        error = await unreached(played(replying(said)), UnsupportedRevision)
        assert error.revisions == listed
        assert "this client 2026-07-28 or 2025-11-25 or" in str(error)


def listing(probe: str, *revisions: str) -> Reply:
    """Return an answer to the probe that lists revisions: an error or a result."""
    if probe == "error":
        return lambda id_: unsupported(id_, *revisions)
    return lambda id_: answer(id_, discovered(*revisions))


@pytest.mark.parametrize("probe", ["error", "result"])
async def test_a_list_of_only_stateful_revisions_starts_a_handshake(probe: str) -> None:
    """The client follows the list: it starts a handshake in the best of these revisions."""
    listed = listing(probe, "2099-01-01", "2025-03-26", "2025-06-18")
    async with played(replying(listed, then="2025-06-18")) as (client, sent):
        await client.list_tools()
        assert (client.revision, sent.params("initialize")[0]["protocolVersion"]) == ("2025-06-18", "2025-06-18")


@pytest.fixture
def later() -> Any:
    """Return a client of a later stateless revision, with the messages of the current stateless revision."""
    known: Any = bindings(STATELESS)
    revision = replace(known.REVISION, name="2027-01-01")

    class Later(known.Client):  # type: ignore[misc]
        dispatcher = Dispatcher(revision, "client", *known.dispatcher.CLIENT.routes.values())

    return Later


@pytest.mark.parametrize("probe", ["error", "result"])
async def test_the_best_common_stateless_revision_is_selected(later: Any, probe: str) -> None:
    listed = ("2025-11-25", STATELESS, "2099-01-01")
    said: list[Any] = []

    async def play(raw: Raw) -> None:
        said.append(await raw.receive())
        await raw.send(listing(probe, *listed)(said[0]["id"]))
        for result in (discovered(*listed, instructions="be kind"), {"tools": [], **COMPLETE}):
            said.append(await raw.receive())
            await raw.send(answer(said[-1]["id"], result))

    async with ends() as (left, right), running(play(Raw(right))), connect(left, later, *CLIENTS) as client:
        await client.list_tools()
        assert (client.revision, client.instructions) == (STATELESS, "be kind")
    assert [asked["method"] for asked in said] == ["server/discover", "server/discover", "tools/list"]
    assert [version_of(asked) for asked in said] == ["2027-01-01", STATELESS, STATELESS]


async def test_one_handshake_is_enough_for_any_chosen_revision() -> None:
    async with played(replying(unknown, then="2024-11-05")) as (client, sent):
        await client.list_tools()
        assert isinstance(client, bindings("2024-11-05").Client)
        assert isinstance(client.server_info, bindings("2024-11-05").types.Implementation)
        assert sent.methods().count("initialize") == 1


@pytest.mark.parametrize("chosen", ["2023-01-01", STATELESS, "", 7, None])
async def test_a_handshake_that_selects_an_unknown_revision_fails(chosen: Any) -> None:
    play = replying(unknown, lambda id_: answer(id_, {**initialized("x"), "protocolVersion": chosen}))
    error = await unreached(played(play), UnsupportedRevision if isinstance(chosen, str) else NoConnection)
    assert "\n" not in str(error)


async def test_a_refused_handshake_is_repeated_with_a_listed_revision() -> None:
    def refusing(*revisions: str) -> Reply:
        return lambda id_: failing(id_, -32602, {"supported": revisions, "requested": "2025-11-25"})

    async with played(replying(unknown, refusing("2024-11-05", "2025-03-26"), then="2025-03-26")) as (client, sent):
        await client.list_tools()
        assert client.revision == "2025-03-26"
        assert [asked["protocolVersion"] for asked in sent.params("initialize")] == ["2025-11-25", "2025-03-26"]

    stubborn = replying(unknown, *[refusing("2025-03-26", "2025-11-25")] * 2)
    await unreached(played(stubborn), match=r"initialize: no .*; initialize: no ")

    new = replying(lambda id_: failing(id_, -32601, {"supported": [STATELESS]}))
    assert (await unreached(played(new, CLIENTS[:4]), UnsupportedRevision)).revisions == (STATELESS,)


# --- silence and late answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "late", [unknown, lambda id_: answer(id_, discovered(STATELESS)), None], ids=["refusal", "result", "silence"]
)
async def test_an_unanswered_probe_starts_a_handshake_and_a_late_answer_is_ignored(late: Reply | None) -> None:
    async def play(raw: Raw) -> None:
        probe, asked = await raw.receive(), await raw.receive()
        assert asked["method"] == "initialize"
        await raw.send(answer(asked["id"], initialized("2025-06-18")))
        assert (await raw.receive())["method"] == "notifications/initialized"
        await raw.send(*([late(probe["id"])] if late else []), notification("notifications/tools/list_changed"))
        while "id" not in (asked := await raw.receive()):  # the client cancels the probe
            assert asked["method"] == "notifications/cancelled"
        await raw.send(answer(asked["id"], {"tools": []}))

    async with played(play, patience=0.05) as (client, _):
        assert client.revision == "2025-06-18"
        assert (await client.list_tools()).tools == []


async def test_a_late_answer_to_the_probe_is_used_if_the_handshake_fails() -> None:
    async def play(raw: Raw) -> None:
        probe, asked = await raw.receive(), await raw.receive()
        await raw.send(unknown(asked["id"]))
        await anyio.sleep(0.02)
        await raw.send(answer(probe["id"], discovered(STATELESS)))
        asked = await raw.receive()
        assert version_of(asked) == STATELESS
        await raw.send(answer(asked["id"], {"tools": [], **COMPLETE}))

    async with played(play, patience=0.1) as (client, sent):
        await client.list_tools()
        assert client.revision == STATELESS
        assert sent.methods() == ["server/discover", "initialize", "tools/list"]


async def test_an_answer_to_the_probe_during_the_handshake_is_ignored() -> None:
    async def play(raw: Raw) -> None:
        await finish(raw, "2025-11-25", answer((await raw.receive())["id"], discovered(STATELESS)))

    async with played(play, patience=0.05) as (client, _):
        await client.list_tools()
        assert client.revision == "2025-11-25"


async def test_a_silent_server_makes_each_attempt_time_out() -> None:
    kinds = [CLIENTS[3](), CLIENTS[4]()]
    for client in kinds:
        client.options = Options(timeout=0.05)

    async def play(raw: Raw) -> None:
        while True:
            await raw.receive()

    error = await unreached(played(play, kinds))
    assert str(error) == "server/discover: no answer within 0.05 s; initialize: initialize was not answered in time"
    assert [type(cause) for _, cause in error.failures] == [RequestTimeout, RequestTimeout]


async def test_a_server_that_disconnects_at_once_is_an_error() -> None:
    await unreached(played(Raw.close), ConnectionClosed, "closed")
    error = await unreached(played(Raw.close, CLIENTS[3:4]), ConnectionClosed)
    assert type(error) is ConnectionClosed  # a single attempt fails with its own error


async def test_messages_before_the_handshake_are_tolerated() -> None:
    heard: list[Any] = []

    class Curious(bindings("2025-11-25").Client):  # type: ignore[misc]
        async def on_logging_message(self, params: Any, ctx: Any) -> None:
            heard.append(params.data)

    class Patient(Raw):
        """End of a connection that skips answers to pings while it waits for requests."""

        async def receive(self) -> Any:
            while (message := await super().receive()).get("id") == "middle":
                assert message["result"] == {}
            return message

    async def play(raw: Raw) -> None:
        log = notification("notifications/message", {"level": "info", "data": "hello"})
        await raw.send(log, b"Welcome!", request("early", "ping"), request("roots", "roots/list"))
        probe = await raw.receive()
        assert [one.get("id") for one in [await raw.receive() for _ in range(3)]] == [None, "early", "roots"]
        await raw.send(refusal(probe["id"], -32602))
        await finish(raw, "2025-11-25", log, request("middle", "ping"))

    async with played(play, [Curious, CLIENTS[4]], raw=Patient) as (client, _):
        await client.list_tools()
    assert heard == ["hello"]  # the earlier log message went to the client of the stateless revision


# --- commands -------------------------------------------------------------------------------------------------

SCRIPT = """
import json, sys
kind, starts = sys.argv[1:]
if kind == "varies":
    kind = open(sys.argv[0] + ".kind").read()
with open(starts, "a") as file:
    file.write("start\\n")

def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    asked = json.loads(line)
    method, id_ = asked.get("method"), asked.get("id")
    if method is None:
        continue
    with open(starts, "a") as file:
        file.write(method + "\\n")
    if kind == "exits" and method not in ("initialize", "notifications/initialized", "tools/list"):
        sys.exit("expected initialize")
    if kind == "hopeless":
        sys.exit(3)
    if kind == "chatty":
        print("Welcome to the server!", flush=True)
    if kind == "modern" and method == "initialize":
        say({"id": id_, "error": {"code": -32601, "message": "no such thing"}})
    elif kind == "modern" and method == "server/discover":
        say({"id": id_, "result": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                                   "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}})
    elif method == "initialize":
        say({"id": id_, "result": {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                                   "serverInfo": {"name": kind, "version": "1"}}})
    elif method == "tools/list":
        say({"id": id_, "result": {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}})
    elif id_ is not None and kind != "silent":
        say({"id": id_, "error": {"code": -32602, "message": "not initialized"}})
"""


class Command:
    """Command that logs each start and each message."""

    def __init__(self, folder: Path) -> None:
        self.script = folder / "odd_server.py"
        self.script.write_text(SCRIPT, "utf-8")
        self.notes = folder / "notes"

    def words(self, kind: str) -> list[str]:
        return [PYTHON, str(self.script), kind, str(self.notes)]

    def noted(self) -> list[str]:
        """Return the log entries since the last call."""
        found = self.notes.read_text().split()
        self.notes.write_text("")
        return found


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["plain", "chatty"])
async def test_a_command_is_probed_once_and_started_once(command: Command, kind: str) -> None:
    words = command.words(kind)
    for target, probes in ((words, ["server/discover"]), (words, []), (words, []), (None, ["server/discover"])):
        if target is None:
            forget()
        async with connect(target or shlex.join(words), *CLIENTS) as client:
            await client.list_tools()
        assert command.noted() == ["start", *probes, *HANDSHAKE]


async def test_a_command_that_ignores_the_probe_is_probed_only_once(command: Command) -> None:
    for probes in (["server/discover"], []):
        async with connect(command.words("silent"), *CLIENTS, probe_timeout=0.3) as client:
            await client.list_tools()
        assert [note for note in command.noted() if note != "notifications/cancelled"] == ["start", *probes, *HANDSHAKE]


@pytest.mark.full
async def test_a_command_has_time_to_start(tmp_path: Path) -> None:
    """After five seconds, a running server would get the handshake."""
    script = tmp_path / "slow.py"
    script.write_text(
        "import time\n"
        "time.sleep(6)\n"
        "from mcp_bindgen.runtime import run\n"
        "from mcp_bindgen.v2026_07_28 import Server\n"
        "run(Server())\n"
    )
    async with connect([PYTHON, str(script)], *CLIENTS) as client:
        assert client.revision == STATELESS


async def test_a_command_that_exits_at_the_probe_is_restarted_without_a_probe(command: Command) -> None:
    for notes in (["start", "server/discover", "start", *HANDSHAKE], ["start", *HANDSHAKE]):
        async with connect(command.words("exits"), *CLIENTS, stderr=subprocess.DEVNULL) as client:
            await client.list_tools()
            assert client.revision == "2025-11-25"
        assert command.noted() == notes


async def test_a_command_that_exits_twice_is_not_restarted_again(command: Command) -> None:
    error = await unreached(connect(command.words("hopeless"), *CLIENTS))
    assert command.noted() == ["start", "server/discover", "start", "initialize"]
    reason = "the server ended with exit code 3; see its stderr above"
    assert str(error) == f"cannot connect to {shlex.join(command.words('hopeless'))!r}: {reason}"
    assert [str(cause) for _, cause in error.failures] == [reason, reason]
    for line, said in (
        ("no-such-program --fast", r"^no-such-program cannot be started: No such file or directory$"),
        ("server.py", r"; to start a Python file, use 'python server\.py'$"),
    ):
        await unreached(connect(line, *CLIENTS), ConnectionClosed, said)


@pytest.mark.parametrize(
    ("line", "stderr", "reason"),
    [
        ("exit 2", None, "exit code 2; see its stderr above"),
        ("exit 2", subprocess.DEVNULL, "exit code 2"),
        ("kill -9 $$", None, "signal SIGKILL; see its stderr above"),
        ("exit 0", None, "exit code 0; does it call run()?"),
        ("echo '{}'; read line; exit 0", None, "exit code 0"),
    ],
)
async def test_the_error_for_a_failed_command_has_the_exit_code_or_signal(
    line: str, stderr: int | None, reason: str
) -> None:
    for words in (["sh", "-c", line], shlex.join(["sh", "-c", line])):
        error = await unreached(connect(words, *CLIENTS, stderr=stderr))
        assert str(error) == f"cannot connect to 'sh': the server ended with {reason}"  # options may be secret


async def test_a_request_to_a_killed_command_reports_the_signal(command: Command) -> None:
    async with connect([sys.executable, *command.words("silent")[1:]], *CLIENTS, probe_timeout=0.3) as client:
        client.link.transport.process.kill()
        with pytest.raises(ConnectionClosed, match=r"^the server ended with signal SIGKILL; see its stderr above$"):
            await client.list_tools()


async def test_a_failed_handshake_in_a_cached_revision_is_followed_by_a_probe(command: Command) -> None:
    """An updated server replaces an outdated server behind the same command."""
    kind = command.script.with_name("odd_server.py.kind")
    kind.write_text("plain")
    for _ in range(2):
        async with connect(command.words("varies"), *CLIENTS) as client:
            assert client.revision == "2025-11-25"
            await client.list_tools()
    assert command.noted() == ["start", "server/discover", *HANDSHAKE, "start", *HANDSHAKE]
    kind.write_text("modern")
    for notes in (["initialize", "server/discover"], ["server/discover"]):
        async with connect(command.words("varies"), *CLIENTS) as client:
            assert client.revision == STATELESS
            await client.list_tools()
        assert command.noted() == ["start", *notes, "tools/list"]


async def test_a_failed_connection_removes_the_cached_revision(command: Command) -> None:
    kind = command.script.with_name("odd_server.py.kind")
    for name in ("plain", "hopeless", "plain"):
        kind.write_text(name)
        connection = connect(command.words("varies"), *CLIENTS)
        if name == "hopeless":
            await unreached(connection, ConnectionClosed)
            command.noted()
        else:
            async with connection as client:
                await client.list_tools()
            assert command.noted() == ["start", "server/discover", *HANDSHAKE]


@pytest.mark.full
async def test_a_connection_with_only_stateful_clients_is_not_cached(command: Command) -> None:
    async with connect([*ECHO, *REVISIONS], *CLIENTS[:4]) as client:
        assert client.revision == "2025-11-25"
    async with connect([*ECHO, *REVISIONS], *CLIENTS) as client:
        assert client.revision == STATELESS


async def test_the_cache_of_revisions_is_limited(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.setattr(connecting, "_MAX_REMEMBERED", 2)
    program, *arguments = command.words("plain")
    for folder, probes in (("/", 1), ("//", 1), ("///", 1), ("///", 0), ("/", 1)):
        async with connect(Entry(program, tuple(arguments), cwd=folder)):
            pass
        assert command.noted().count("server/discover") == probes


async def test_a_client_connects_to_own_servers_over_stdio() -> None:
    for revisions, spoken in ((["2024-11-05"], "2024-11-05"), ([STATELESS], STATELESS), (REVISIONS, STATELESS)):
        async with connect([*ECHO, *revisions], *CLIENTS) as client:
            assert client.revision == spoken
            assert (await client.call_tool("echo", {"text": "hi"})).content[0].text == "hi"


async def test_a_single_client_accepts_the_same_targets_without_extra_requests(command: Command) -> None:
    program, *arguments = words = command.words("plain")
    for target in (shlex.join(words), words, entry("x", {"command": program, "args": arguments})):
        async with CLIENTS[3].connect(target) as client:
            await client.list_tools()
        assert command.noted() == ["start", *HANDSHAKE]
    older = r"speaks an older revision.*use connect.*client of an older revision"
    await unreached(CLIENTS[4].connect(words, exactly=True), UnsupportedRevision, older)
    assert command.noted() == ["start", "server/discover"]


NOTHING: list[tuple[Any, str]] = [
    ("", "the command is empty"),
    ("it's", "not a command: it's: No closing quotation"),
    ("a --token 's3cret", "not a command: a: No closing quotation"),
    ("PASSWORD=s3cret a", "PASSWORD is a variable, not a program; begin the command with env PASSWORD=..."),
    ({}, 'it needs either "command" or "url"'),
    ({"url": "ftp:x"}, '"url" must begin with'),
    ({"url": "ftp://x"}, "no transport for ftp:; installed: http:, https:"),
    ({"url": "http://x", "type": "websocket"}, '"type" of a URL must be one of http, streamable-http, sse'),
]


@each(("target", "message"), NOTHING)
async def test_an_invalid_target_is_an_error(target: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        async with connect(Entry.read(target) if isinstance(target, dict) else target, *CLIENTS):
            pass
    assert "\n" not in str(caught.value)


async def test_headers_are_accepted_only_for_urls() -> None:
    for target in ("x y", ["x"], Entry("x")):
        await unreached(connect(target, *CLIENTS, headers={"a": "b"}), ValueError, r"headers .* URL")


# --- URLs -----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def listening(app: Any) -> AsyncGenerator[tuple[str, list[tuple[str, str]]]]:
    """Serve an ASGI application; yield its origin and the log: HTTP method, then MCP method or path."""
    heard: list[tuple[str, str]] = []

    async def record(scope: Any, receive: Any, send: Any) -> None:
        parts = [await receive()]
        while parts[-1].get("more_body"):
            parts.append(await receive())
        body = b"".join(part.get("body", b"") for part in parts)
        posted = scope["method"] == "POST"
        heard.append((scope["method"], json.loads(body).get("method", "answer") if posted else scope["path"]))

        async def listen() -> Any:
            return parts.pop(0) if parts else await receive()

        await app(scope, listen, send)

    lifespan = app.lifespan() if hasattr(app, "lifespan") else nullcontext()
    stop, ready = anyio.Event(), anyio.Event()
    running_server = Server(
        uvicorn.Config(record, "127.0.0.1", 0, log_config=None, lifespan="off", access_log=False, timeout_keep_alive=60)
    )
    async with lifespan, anyio.create_task_group() as tasks:
        tasks.start_soon(running_server.run_until, stop, ready)
        await ready.wait()
        try:
            yield f"http://127.0.0.1:{running_server.servers[0].sockets[0].getsockname()[1]}", heard
        finally:
            stop.set()


def posted(heard: list[tuple[str, str]]) -> list[str]:
    """Return the MCP methods of the POST requests."""
    return [name for method, name in heard if method == "POST"]


@pytest.mark.full
@pytest.mark.parametrize("revision", [*STATEFUL[1:], STATELESS, "both"])
async def test_a_client_connects_to_own_servers_over_http(revision: str) -> None:
    revisions = REVISIONS if revision == "both" else [revision]
    spoken = STATELESS if revision == "both" else revision
    async with listening(HttpApp(*map(server, revisions), revisions=revisions)) as (url, heard):
        for again in (False, True):
            async with connect(f"{url}/mcp", *CLIENTS) as client:
                assert client.revision == spoken
                await works(client)
            hands = [] if spoken == STATELESS else ["initialize", "notifications/initialized"]
            probes = [] if again and spoken != STATELESS else ["server/discover"]
            assert posted(heard) == [*probes, *hands, "tools/list", "tools/call"]
            heard.clear()


async def test_a_single_client_uses_its_own_revision_over_http() -> None:
    async with listening(HttpApp(*map(server, REVISIONS))) as (url, heard):
        for kind in CLIENTS[1:]:
            async with kind.connect(f"{url}/mcp") as client:
                await works(client)
            assert ("server/discover" in posted(heard)) == (kind.revision == STATELESS)
            assert ("initialize" in posted(heard)) == (kind.revision != STATELESS)
            heard.clear()


@pytest.mark.full
@pytest.mark.parametrize("wire", REVISIONS[1:])
async def test_clients_of_every_revision_work_with_each_revision_over_http(wire: str) -> None:
    async with listening(HttpApp(server(wire), revisions=[wire])) as (url, heard):
        for kind in CLIENTS:
            for _ in range(2):
                async with kind.connect(f"{url}/mcp") as client:
                    assert (client.revision, client.wire_revision) == (kind.revision, wire)
                    await works(client)
            asked = [name for name in posted(heard) if name != "subscriptions/listen"]
            assert asked[-2:] == ["tools/list", "tools/call"]
            heard.clear()


def sse_server(revision: str) -> Any:
    """Return an application that serves only HTTP+SSE, as in 2024-11-05."""
    from mcp_bindgen.http.server.legacy_sse import SseApp

    return SseApp(server(revision), revisions=[revision])


async def test_a_client_connects_to_an_http_sse_server() -> None:
    async with listening(sse_server("2024-11-05")) as (url, heard):
        for again in (False, True):
            async with connect(f"{url}/sse?token=x", *CLIENTS) as client:
                assert client.revision == "2024-11-05"
                await works(client)
            tried = [] if again else [("POST", "server/discover"), ("POST", "initialize")]
            assert heard[: len(tried) + 2] == [*tried, ("GET", "/sse"), ("POST", "initialize")]
            heard.clear()
        async with connect(Entry.read({"url": f"{url}/sse", "type": "sse"}), *CLIENTS) as client:
            await works(client)
        async with CLIENTS[0].connect(f"{url}/sse") as client:
            await works(client)


async def test_a_server_may_move_from_http_sse_to_streamable_http() -> None:
    old, new = sse_server("2024-11-05"), HttpApp(server(STATELESS), revisions=[STATELESS], path="/sse")
    apps = [old]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await apps[-1](scope, receive, send)

    async with old.lifespan(), new.lifespan(), listening(app) as (url, heard):
        async with connect(f"{url}/sse", *CLIENTS) as client:
            assert client.revision == "2024-11-05"
        apps.append(new)
        heard.clear()
        async with connect(f"{url}/sse", *CLIENTS) as client:
            assert client.revision == STATELESS
        assert heard == [("GET", "/sse"), ("POST", "server/discover")]


PAGE = b"<!doctype html>\n<title>Not here</title>"


def answering(status: int, body: bytes = b"", kind: str = "text/plain") -> Any:
    """Serve the same response to all requests."""

    async def play(heard: Heard) -> None:
        await heard.end(status, body, kind)

    return serving(play)


async def test_a_url_without_a_server_is_an_error() -> None:
    async with answering(404, PAGE, "text/html") as script:
        error = await unreached(connect(f"{script.url}?key=secret", *CLIENTS))
    assert str(error) == f"{script.url} answered 404 Not Found: Not here"
    assert script.names == ["server/discover", "initialize", "GET"]
    assert "mcp-protocol-version" not in script.called("initialize")[0].headers
    assert script.called("server/discover")[0].headers["mcp-protocol-version"] == STATELESS
    assert script.called("server/discover")[0].headers["mcp-method"] == "server/discover"


async def test_http_sse_is_tried_only_after_certain_status_codes() -> None:
    """After 400, 404 or 405 the client also tries HTTP+SSE; any other error status of the handshake is final."""
    for status, more in ((400, ["GET"]), (405, ["GET"]), (401, []), (403, []), (500, [])):
        async with answering(status, b"no") as script:
            error = await unreached(connect(script.url, *CLIENTS))
        assert script.names == ["server/discover", "initialize", *more]
        assert isinstance(error.failures[0][1], Refused)
        assert str(status) in str(error)
    nowhere = connect("http://127.0.0.1:9/mcp", *CLIENTS)
    await unreached(nowhere, ConnectionClosed, r"no answer from http://127\.0\.0\.1:9/mcp")


@pytest.mark.parametrize("status", [200, 400, 404])
async def test_a_stateless_server_that_refuses_the_probe_over_http_gets_no_handshake(status: int) -> None:
    objections: list[tuple[Reply, type[Exception]]] = [
        (lambda id_: refusal(id_, -32020), ProtocolError),
        (lambda id_: unsupported(id_, "2099-01-01"), UnsupportedRevision),
        (lambda id_: unsupported(None, "2099-01-01"), UnsupportedRevision),
    ]
    for said, kind in objections[
        : 2 if status == 200 else 3
    ]:  # in a 200 response, an error without an id is not an answer

        async def play(heard: Heard, said: Reply = said) -> None:
            await heard.json(said(heard.id), status)

        async with serving(play) as script:
            await unreached(connect(script.url, *CLIENTS), kind)
            assert script.names == ["server/discover"]


NO_SESSION = {"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": "no id"}}


@each(
    "odd",
    [
        lambda heard: heard.json(NO_SESSION, 400),
        lambda heard: heard.json(unknown(heard.id), 200),
        lambda heard: heard.end(400, PAGE, "text/html"),
        lambda heard: heard.end(400),
        lambda heard: heard.end(500, b"oops", "text/plain"),
        lambda heard: heard.end(202),
        Heard.until_gone,
    ],
)
async def test_any_other_http_answer_to_the_probe_starts_a_handshake(odd: Callable[[Heard], Awaitable[None]]) -> None:
    async def play(heard: Heard) -> None:
        if heard.name == "server/discover":
            await odd(heard)
        elif heard.name == "initialize":
            assert "mcp-protocol-version" not in heard.headers
            await heard.result(initialized("2025-06-18"), mcp_session_id="s-1")
        elif heard.name == "tools/list":
            assert (heard.headers["mcp-protocol-version"], heard.headers["mcp-session-id"]) == ("2025-06-18", "s-1")
            await heard.result({"tools": []})
        else:
            await heard.end(202 if heard.method == "POST" else 405)

    async with serving(play) as script:
        async with connect(script.url, *CLIENTS, probe_timeout=0.2) as client:
            assert client.revision == "2025-06-18"
            assert (await client.list_tools()).tools == []
            if odd is Heard.until_gone:  # the client closes the response, and cannot send a cancellation
                await until(lambda: script.called("server/discover")[0].gone_at)
        assert [name for name in script.names if name not in ("GET", "DELETE")] == ["server/discover", *HANDSHAKE]


async def test_headers_are_sent_with_every_http_request() -> None:
    async with answering(404) as script:
        there = Entry.read({"url": script.url, "headers": {"Authorization": "Bearer a", "X-One": "1"}})
        await unreached(connect(there, *CLIENTS, headers={"X-Two": "2"}))
        assert len(script.heard) == 3
        for heard in script.heard:
            assert [heard.headers.get(name) for name in ("authorization", "x-one", "x-two")] == ["Bearer a", "1", "2"]


# --- hosts and the command line -------------------------------------------------------------------------------


@pytest.mark.full
async def test_a_host_connects_to_servers_of_every_kind() -> None:
    async with (
        listening(HttpApp(server(STATELESS))) as (url, _),
        listening(HttpApp(server(STATELESS), path="/other")) as (other, _),
        listening(sse_server("2024-11-05")) as (sse, _),
    ):
        servers = {
            "old": {"command": ECHO[0], "args": [*ECHO[1:], "2025-03-26"]},
            "new": {"command": ECHO[0], "args": [*ECHO[1:], STATELESS]},
            "http": {"url": f"{url}/mcp", "type": "http"},
            "sse": {"url": f"{sse}/sse"},
            "wrong": {"url": f"{sse}/sse", "type": "streamable-http"},
            "nothing": {"url": f"{other}/mcp"},
        }
        spoken = {"old": "2025-03-26", "new": STATELESS, "http": STATELESS, "sse": "2024-11-05"}
        async with Host(servers, CLIENTS) as host:
            assert {name: client.revision for name, client in host.clients.items()} == spoken
            assert [offer.server for offer in await host.tools()] == list(spoken)
            for name in host.clients:
                assert (await host.call_tool("echo", {"text": name}, server=name)).content[0].text == name
            failures = {name: type(error) for name, error in host.failures.items()}
            assert failures == {"wrong": NoConnection, "nothing": NoConnection}


async def test_an_unknown_transport_in_a_configuration_is_reported() -> None:
    async with Host({"x": {"url": "http://x", "type": "carrier pigeon"}}, CLIENTS) as host:
        assert '"type" of a URL must be one of http, streamable-http, sse' in str(host.failures["x"])


def called(*arguments: str) -> tuple[int, str, str]:
    """Run `mcp-bindgen call`."""
    done = inside("call", *arguments)
    return done.returncode, done.stdout, done.stderr


ECHOED = ("tools/call", "echo", '{"text": "hi"}')


@pytest.mark.full
@pytest.mark.parametrize(
    "revisions", cases([[STATELESS], ["2024-11-05"], ["2025-11-25", STATELESS]], quick=[["2025-11-25", STATELESS]])
)
def test_call_works_with_stateful_and_stateless_commands(revisions: list[str]) -> None:
    line = shlex.join([*ECHO, *revisions])
    assert called(line, *ECHOED) == (0, "hi\n", "")
    code, listed, _ = called(line)
    assert (code, "echo" in listed) == (0, True)
    if STATELESS in revisions:
        assert json.loads(called(line, "server/discover", "--json")[1])["supportedVersions"][0] == STATELESS
        assert called(line, *ECHOED, "--revision", STATELESS)[:2] == (0, "hi\n")
    if len(revisions) == 2:
        assert called(line, "ping") == (0, "{}\n", "")
        assert called(line, *ECHOED, "--revision", "2025-11-25") == (0, "hi\n", "")
    elif STATELESS in revisions:
        assert "no request that a client of MCP 2026-07-28 can make" in called(line, "ping")[2]
        assert called(line, "ping")[0] == 2


@pytest.mark.full
def test_call_works_with_urls_in_stateful_and_stateless_revisions() -> None:
    with subprocess.Popen([*ECHO, "--http", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True) as started:
        try:
            assert started.stderr is not None
            url = next(word for word in started.stderr.readline().split() if word.endswith("/mcp"))
            assert called(url, *ECHOED) == (0, "hi\n", "")
            assert called(url, *ECHOED, "--revision", "2025-11-25") == (0, "hi\n", "")
            assert called(url, "ping") == (0, "{}\n", "")
            code, _, error = called(url.replace("/mcp", "/nothing"))
            assert (code, error.count("\n")) == (2, 1)
            assert "/nothing answered 404" in error
        finally:
            started.terminate()


WINDOWS = r"C:\Program Files\Python\python.exe"


@pytest.mark.parametrize(
    ("platform", "line", "words"),
    [
        ("win32", rf'"{WINDOWS}" -m weather --data D:\data', [WINDOWS, "-m", "weather", "--data", r"D:\data"]),
        ("win32", r"C:\tools\server.exe #1", [r"C:\tools\server.exe", "#1"]),
        ("linux", r"/opt/my\ tools/server 'a b'", ["/opt/my tools/server", "a b"]),
    ],
)
def test_a_command_line_follows_the_platform(
    platform: str, line: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "sys", SimpleNamespace(platform=platform))
    assert connecting.command_words(line) == words


def test_a_drive_letter_is_neither_a_scheme_nor_a_module() -> None:
    assert connecting.scheme_of(r"C:\server.py") is None
    assert (split(r"C:\server.py"), split(r"C:\server.py:app")) == ((r"C:\server.py", ""), (r"C:\server.py", "app"))
