"""Forward standard input and output of a program, byte for byte."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from .recorder import Channel, Lines, Recorder
from .trace import Trace

_CHUNK_BYTES = 64 * 1024


def forward(command: Sequence[str], recorder: Recorder, *, env: Mapping[str, str], cwd: str | None = None) -> int:
    """Run a server between our standard input and output until it ends; its stderr is ours.

    Args:
        command: The program and its arguments.
        recorder: Takes the bytes of both sides, just before they are forwarded.
        env: Environment variables to add.
        cwd: Working directory of the server.

    Returns:
        The exit code of the server; 128 plus the number of the signal that ended it.

    Raises:
        OSError: The program cannot be started.
    """
    server = subprocess.Popen(  # noqa: S603 - the user's command
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env={**os.environ, **env}, cwd=cwd
    )
    if server.stdin is None or server.stdout is None:
        raise OSError("no pipes")
    trace = Trace(recorder.write)
    asked, answered = Lines(trace, "client"), Lines(trace, "server")
    requests = threading.Thread(target=_copy, args=(0, server.stdin.fileno(), recorder, asked), daemon=True)
    replies = threading.Thread(target=_copy, args=(server.stdout.fileno(), 1, recorder, answered), daemon=True)
    with _signals_to(server):
        requests.start()
        replies.start()
        code = server.wait()
        replies.join()
    recorder.end(asked)
    recorder.end(answered)
    return code if code >= 0 else 128 - code


def _copy(source: int, sink: int, recorder: Recorder, channel: Channel) -> None:
    """Copy bytes until one side is closed, and close both."""
    with suppress(OSError):
        while data := os.read(source, _CHUNK_BYTES):
            recorder.record(channel, data)  # first: a response must not be recorded before its request
            view = memoryview(data)
            while view:
                view = view[os.write(sink, view) :]
    for end in (source, sink):
        with suppress(OSError):
            os.close(end)


@contextmanager
def _signals_to(server: subprocess.Popen[bytes]) -> Generator[None]:
    """Pass on the signals that end a program."""

    def pass_on(number: int, _frame: FrameType | None) -> None:
        server.send_signal(number)

    kinds = (signal.SIGTERM, signal.SIGINT)
    before = {kind: signal.signal(kind, pass_on) for kind in kinds}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
