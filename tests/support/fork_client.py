"""The client of `forks.py`: `python -IS fork_client.py SOCKET WORD...` acts as `python WORD...`.

It imports next to nothing, as it has to start quicker than any program.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import marshal
import os
import sys

ELSEWHERE = {"build", "ensurepip", "mypy", "pip", "pyright", "ruff", "venv"}
"""Modules that run in a new process: they look at how Python has been started, or at what has been imported."""


def ask(path: str, words: list[str]) -> None:
    """Start a program as a fork, pass on signals, and end as it does."""
    if ELSEWHERE.intersection(words[: words.index("-m") + 2] if "-m" in words else ()):
        os.execv(sys.executable, [sys.executable, *words])
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    line.connect(path)
    body = marshal.dumps([words, os.getcwd(), dict(os.environ)])  # noqa: PTH109
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    line.sendmsg([len(body).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    line.sendall(body)
    os.close(0)
    os.close(1)
    for number in (_signal.SIGTERM, _signal.SIGINT):
        _signal.signal(number, lambda number, _: line.sendall(bytes([number])))
    code = int.from_bytes(line.recv(2) or b"\0\1", "big", signed=True)
    if code < 0:
        if -code != _signal.SIGKILL:
            _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


ask(sys.argv[1], sys.argv[2:])
