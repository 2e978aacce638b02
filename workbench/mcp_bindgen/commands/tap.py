"""`mcp-bindgen tap`: stand between a client and a server, and check each message."""

from __future__ import annotations

import json
import os
import shlex
import socket
import sys
from contextlib import nullcontext
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, BinaryIO, get_args
from urllib.parse import urlsplit

import anyio
import typer

from mcp_bindgen.cli.options import Commands, Env, Json, Out, Server
from mcp_bindgen.cli.output import print_json
from mcp_bindgen.cli.terminal import say
from mcp_bindgen.host.configuration import Entry
from mcp_bindgen.spec import BadInput
from mcp_bindgen.tap import Recorder, TracedMessage, forward

from .live import Connection, Failed, say_message
from .servers import named

_BACKLOG = 2048  # connections that wait to be accepted
_NO_LINK, _NO_WAIT = (0, 0) if sys.platform == "win32" else (os.O_NOFOLLOW, os.O_NONBLOCK)

tap = Commands("Stand between a client and a server, or take the place of one of them.", default="forward")


@tap.command("forward")
def forward_(
    command: Annotated[
        list[str], typer.Argument(metavar="SERVER...", help="The command of the server after --, or a SERVER.")
    ],
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Address on this machine for the clients of a server at a URL."),
    ] = None,
    as_json: Json = False,
    out: Out = None,
    env: Env = None,
) -> None:
    """Stand between a client and a server: forward each byte, and show and check each message.

    Over stdio, put `mcp-bindgen tap --` before the command in the configuration of the client. Over HTTP, the client
    connects to the address that is printed. The trace is on stderr, with times; each violation of the revision's schema
    is shown with its place and its rule. Secrets are left out. The exit code is the server's; it is 1 if the server
    ended with 0 and a message was invalid. With --json the trace is JSON lines on stderr; with --out it is written to a
    file as JSON lines, too.

    Examples:

    `mcp-bindgen tap forward -- npx -y @modelcontextprotocol/server-everything`; the word `forward` may be left out.

    `mcp-bindgen tap --out trace.jsonl mcp.json#weather` starts an entry of a file.

    `mcp-bindgen tap --listen 127.0.0.1:8001 https://example.com/mcp` forwards HTTP.
    """
    words = command[0] if len(command) == 1 else shlex.join(command)
    entry = named(words, env or ()).entry
    if entry.command is None and entry.headers:
        raise BadInput("tap sends no headers of its own", fix="give the URL, and the headers to the client")
    if (entry.command is None) != (listen is not None):
        fix = "as in: --listen 127.0.0.1:8001" if listen is None else "leave it out"
        raise BadInput("--listen is for servers at a URL, and needed there", fix=fix)
    with nullcontext() if out is None else _opened(out) as file:

        def write(message: TracedMessage) -> None:
            if file is not None or as_json:
                line = json.dumps(message.document(), ensure_ascii=False)
                if file is not None:
                    file.write(f"{line}\n".encode("utf-8", "backslashreplace"))  # a lone surrogate: \\udXXX
                if as_json:
                    say(line, err=True)
            if not as_json:
                say_message(message)

        with Recorder(write) as recorder:
            if listen is None:
                code = _forward_stdio(entry, recorder)
            else:
                code = _forward_http(entry.url or "", listen, recorder)
    if recorder.error is not None:
        say(f"warning: the trace is incomplete: {recorder.error.strerror}", err=True)
    if recorder.lost_bytes:
        say(f"warning: {recorder.lost_bytes} bytes were forwarded and not recorded", err=True)
    if not as_json:
        spoken = f"MCP {recorder.revision}" if recorder.revision else "no known revision"
        say(f"{recorder.count} messages, {spoken}, {recorder.violation_count} violations", err=True)
    if code or recorder.violation_count:
        raise typer.Exit(code or 1)


def _forward_stdio(entry: Entry, recorder: Recorder) -> int:
    assert entry.command is not None
    try:
        return forward([entry.command, *entry.args], recorder, env=entry.env, cwd=entry.cwd)
    except OSError as error:
        raise BadInput(f"cannot start {entry.command}: {error.strerror}", fix="check the command") from None


def _forward_http(url: str, address: str, recorder: Recorder) -> int:
    from mcp_bindgen.http.server.serve import parse_address
    from mcp_bindgen.tap.http import serve

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise BadInput(f"tap forwards HTTP and stdio, not {parts.scheme}", fix="give an http or https URL")
    try:
        host, port = parse_address(address)
    except ValueError as error:
        raise BadInput(f"--listen: {error}") from None
    if host not in ("127.0.0.1", "::1", "localhost"):
        raise BadInput(f"--listen {address} is no address of this machine only", fix="as in: --listen 127.0.0.1:8001")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise BadInput(
            f"{address} cannot be used: {os.strerror(error.errno or 0)}", fix="choose another port"
        ) from None
    with listener:
        name = f"[{host}]" if ":" in host else host
        say(f"listening on http://{name}:{listener.getsockname()[1]}{parts.path or '/'}", err=True)
        options = {"use_uvloop": find_spec("uvloop") is not None}
        anyio.run(serve, url, listener, recorder, backend_options=options)
    return 0


RecordingFile = Annotated[Path, typer.Argument(metavar="FILE", help="A recording that `tap --out` wrote.")]


@tap.command("serve")
def serve_(file: RecordingFile) -> None:
    """Serve a recording over stdio: requests get the recorded responses, matched by method and params.

    Ids, progress tokens and other metadata do not count. Equal requests get their responses in the recorded order, and
    then the last one again. Messages of the server during a request are sent in their place. The error for any other
    request names the nearest recorded one.

    Examples:

    `mcp-bindgen tap serve trace.jsonl`

    `mcp-bindgen call 'mcp-bindgen tap serve trace.jsonl' tools/list` asks the recording.
    """
    from mcp_bindgen.runtime.transports.pipes import StdioServerTransport
    from mcp_bindgen.tap.player import Player
    from mcp_bindgen.tap.recording import read_recording

    recording = read_recording(file)
    if recording.redacted:
        say(f"warning: {recording.redacted} messages have redacted values, which are sent as they are", err=True)

    async def run() -> None:
        transport = StdioServerTransport()
        try:
            await Player(recording, transport).run()
        finally:
            await transport.close()

    anyio.run(run)


@tap.command("replay")
def replay_(
    file: RecordingFile,
    server: Server,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="POINTER", help="Place in results that may differ, as in /content/*/text; repeatable."),
    ] = None,
    as_json: Json = False,
    *,
    connection: Connection,
) -> None:
    """Send the requests of a recording to a server, and show the responses that differ.

    Lists are compared as contracts, and results by value. Structured content with another value fits if the recorded
    output schema allows it. Exit code 1 if a response differs.

    Examples:

    `mcp-bindgen tap replay trace.jsonl 'npx -y @modelcontextprotocol/server-everything'`

    `mcp-bindgen tap replay trace.jsonl http://127.0.0.1:8000/mcp --ignore /structuredContent/time`
    """
    from mcp_bindgen.tap.comparison import Verdict  # the validator takes time to load
    from mcp_bindgen.tap.recording import read_recording

    from .replay import replay

    recording = read_recording(file)
    spoken = connection.revision or recording.revision
    if not spoken:
        raise BadInput("names no revision", file=file, fix="state one with --revision")
    if wrong := [one for one in ignore or () if not one.startswith("/")]:
        raise BadInput(f"--ignore {wrong[0]} is no JSON Pointer", fix="as in: --ignore /structuredContent/time")
    try:
        found = replay(recording, ignore or (), server, replace(connection, revision=spoken))
    except Failed as error:
        say(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    counts = {verdict: sum(one.verdict == verdict for one in found) for verdict in get_args(Verdict)}
    if as_json:
        print_json({"requests": [asdict(one) for one in found], **counts})
    else:
        for one in found:
            say(f"{one.verdict:<9}  {one.line}: {one.request}")
            for difference in one.differences:
                say(f"{'':9}  {difference}")
        say(f"{len(found)} requests: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}")
    if counts["different"]:
        raise typer.Exit(1)


def _opened(path: Path) -> BinaryIO:
    """Open a file that only its owner can read, also if it exists, or a pipe or device that has a reader.

    Nothing is buffered. A link to a file is not followed; the pipes of a shell, as in `>(jq)`, are links.
    """
    is_file = path.is_file() or not path.exists()
    try:
        number = os.open(path, os.O_WRONLY | (os.O_CREAT | _NO_LINK if is_file else _NO_WAIT), 0o600)
        file = os.fdopen(number, "wb", buffering=0)
        if is_file:
            os.chmod(number if os.chmod in os.supports_fd else path, 0o600)  # noqa: PTH101 - of the open file
            file.truncate()
        else:
            os.set_blocking(number, True)
    except OSError as error:
        reason = "it is a symbolic link" if path.is_symlink() else error.strerror
        raise BadInput(f"cannot be written: {reason}", file=path, fix="choose another --out") from None
    return file
