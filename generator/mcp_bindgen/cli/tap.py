"""`mcp-bindgen tap`: stand between a client and a server, and check each message."""

from __future__ import annotations

import json
import os
import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from mcp_bindgen.spec import BadInput
from mcp_bindgen.tap import Recorder, TracedMessage, forward

from .options import Env, Json, Out
from .servers import named
from .terminal import say, say_message


def tap(
    command: Annotated[
        list[str], typer.Argument(metavar="SERVER...", help="The command of the server after --, or a SERVER.")
    ],
    as_json: Json = False,
    out: Out = None,
    env: Env = None,
) -> None:
    """Stand between a client and a server over stdio: forward each byte, and show and check each message.

    Put `mcp-bindgen tap --` before the command in the configuration of the client. The trace is on stderr, with times;
    each violation of the revision's schema is shown with its place and its rule. Secrets are left out. The exit code is
    the server's; it is 1 if the server ended with 0 and a message was invalid. With --json the trace is JSON lines on
    stderr; with --out it is written to a file as JSON lines, too.

    Examples:

    `mcp-bindgen tap -- npx -y @modelcontextprotocol/server-everything`

    `mcp-bindgen tap --out trace.jsonl mcp.json#weather` starts an entry of a file.
    """
    found = named(command[0] if len(command) == 1 else shlex.join(command), env or ())
    entry = found.entry
    if entry.command is None:
        raise BadInput(f"{command[0]} is no program; tap forwards stdio", fix="give the command of a server")
    with ExitStack() as stack:
        file = None if out is None else stack.enter_context(_opened(out))

        def write(message: TracedMessage) -> None:
            if file is not None or as_json:
                line = json.dumps(message.document(), ensure_ascii=False)
                if file is not None:
                    file.write(f"{line}\n".encode("utf-8", "backslashreplace"))  # a lone surrogate: \\udXXX
                if as_json:
                    say(line, err=True)
            if not as_json:
                say_message(message)

        recorder = Recorder(write)
        with recorder:
            try:
                code = forward([entry.command, *entry.args], recorder, env=entry.env, cwd=entry.cwd)
            except OSError as error:
                raise BadInput(f"cannot start {entry.command}: {error.strerror}", fix="check the command") from None
    if recorder.error is not None:
        say(f"warning: the trace is incomplete: {recorder.error.strerror}", err=True)
    if recorder.lost_bytes:
        say(f"warning: {recorder.lost_bytes} bytes were forwarded and not recorded", err=True)
    trace = recorder.trace
    if not as_json:
        spoken = f"MCP {trace.revision}" if trace.revision else "no known revision"
        say(f"{trace.count} messages, {spoken}, {trace.violation_count} violations", err=True)
    if code or trace.violation_count:
        raise typer.Exit(code or 1)


def _opened(path: Path) -> BinaryIO:
    """Open a file that only its owner can read, also if it exists; nothing is buffered."""
    try:
        if path.is_file():
            path.chmod(0o600)
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise BadInput(f"cannot be written: {error.strerror}", file=path, fix="choose another --out") from None
    return os.fdopen(number, "wb", buffering=0)
