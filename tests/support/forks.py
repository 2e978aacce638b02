"""Python programs that start at once: a process that has imported them forks for each start.

`python -m tests.support.forks SOCKET PROGRAM MODULE...` serves a program. `python -IS forks.py SOCKET ARGUMENT...`
starts it: that passes on streams, folder, environment and signals, and ends as the program does.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from functools import cache

_SIZE = 4


@cache
def forked(program: str, *modules: str) -> tuple[str, ...]:
    """Return the command that starts a program; what serves it lives as long as this process.

    Args:
        program: The file of the program.
        modules: What it imports late.
    """
    import atexit
    import subprocess
    import tempfile
    import time
    from pathlib import Path

    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    path = Path(folder.name, "forks")
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.support.forks", str(path), program, *modules]
    serving = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, start_new_session=True)
    atexit.register(serving.wait)
    atexit.register(serving.kill)
    while not path.exists():
        assert serving.poll() is None, f"{program} cannot be imported"
        time.sleep(0.02)
    return sys.executable, "-IS", __file__, str(path)


def ask(path: str, words: list[str]) -> None:
    """Start the program, and end as it does."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        body = json.dumps([words, os.getcwd(), dict(os.environ)]).encode()  # noqa: PTH109
        socket.send_fds(line, [len(body).to_bytes(_SIZE, "big")], [0, 1, 2])
        line.sendall(body)
        os.close(0)
        os.close(1)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: line.sendall(bytes([number])))
        code = int.from_bytes(line.recv(1) or b"\1", "big", signed=True)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def serve(path: str, program: str, *modules: str) -> None:
    """Fork for each start."""
    import gc
    import runpy
    from importlib import import_module

    runpy.run_path(program, run_name="imported")
    for name in modules:
        import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, _reap)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{path}.new")
        listener.listen(100)
        os.rename(f"{path}.new", path)  # noqa: PTH104
        while listener.fileno() in select.select([listener.fileno(), 0], [], [])[0]:  # until the tests are gone
            line, _ = listener.accept()
            if os.fork():
                line.close()
                continue
            listener.close()
            size, streams, _, _ = socket.recv_fds(line, _SIZE, 3)
            words, folder, variables = json.loads(line.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
            if _watched(line, streams):
                line.close()
                for number, name in enumerate(("stdin", "stdout", "stderr")):  # they remember other files
                    stream = open(number, "w" if number else "r", 1, "utf-8", closefd=False)  # noqa: SIM115
                    setattr(sys, name, stream)
                os.chdir(folder)
                os.environ.clear()
                os.environ.update(variables)
                sys.argv = [program, *words]
                runpy.run_path(program, run_name="__main__")
                sys.stdout.flush()
            os._exit(0)  # quickly, without taking apart what was imported


def _reap(*_: object) -> None:
    """Wait for those that have ended, so that their processor time counts."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _watched(line: socket.socket, streams: list[int]) -> bool:
    """Fork the program: true there, false once it has ended, which is told, as signals are to it."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer.fileno())
    program = os.fork()
    for number, stream in enumerate(streams):
        if not program:
            os.dup2(stream, number)
        os.close(stream)
    if not program:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return True
    ended, status = 0, 0
    while not ended:
        if line in select.select([line, reader], [], [])[0]:
            os.kill(program, (line.recv(1) or bytes([signal.SIGKILL]))[0])
        ended, status = os.waitpid(program, os.WNOHANG)
    with suppress(OSError):  # the caller may be gone
        line.sendall(os.waitstatus_to_exitcode(status).to_bytes(1, "big", signed=True))
    return False


if __name__ == "__main__":
    if sys.flags.no_site:
        ask(sys.argv[1], sys.argv[2:])
    serve(*sys.argv[1:])
