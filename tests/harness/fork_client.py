"""The client of `forks.py`: `python -IS fork_client.py SOCKET WORD...` acts as `python WORD...`.

It imports very few modules because it must start faster than any program. It replaces itself with a new `python`
where a fork would behave differently: with settings that Python or typer reads once, on a terminal, or with closed
streams.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import marshal
import os
import sys

ELSEWHERE = {"build", "ensurepip", "mypy", "pip", "pyright", "ruff", "venv"}
"""Modules that depend on how Python was started, or on the modules that are already imported."""
HARMLESS = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
ONCE = {"FORCE_COLOR", "NO_COLOR", "PY_COLORS", "TERMINAL_WIDTH"}


def may_fork(words: list[str]) -> bool:
    """Return True if a fork of the preloaded process behaves like a new process."""
    rest = words[2:] if words[:1] == ["-W"] else words
    if not rest or (rest[0].startswith("-") and (rest[0] not in ("-c", "-m") or rest[1] in ELSEWHERE)):
        return False
    if rest[0] == "-c" and "sys.modules" in rest[1]:  # the code looks at the imported modules
        return False
    settings = {name for name in os.environ if name.startswith("PYTHON") and not name.startswith("PYTHON_")}
    if settings - HARMLESS or ONCE.intersection(os.environ):
        return False
    try:
        return not any(os.isatty(number) for number in map(_checked, (0, 1, 2)))
    except OSError:
        return False


def _checked(number: int) -> int:
    """Return an open stream; raise OSError if it is closed."""
    os.fstat(number)
    return number


def ask(path: str, words: list[str]) -> None:
    """Start a program as a fork, pass on signals, and exit as the program does."""
    if not may_fork(words):
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
