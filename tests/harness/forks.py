"""Start Python programs at once, as forks of a process that has imported their modules.

`python -m tests.harness.forks NUMBER` is the process that forks. It has imported all of `mcp_bindgen` and the official
SDK. `fork_client.py` starts a program: it passes on streams, folder, environment and signals, and exits as the program
does.
"""

from __future__ import annotations

import atexit
import gc
import marshal
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import warnings
from contextlib import suppress
from importlib import import_module, invalidate_caches
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, cast

CLIENT = Path(__file__).with_name("fork_client.py")
ROOT = Path(__file__).parents[2]
INSTALLED = Path(sys.executable).with_name("mcp-bindgen")
VARIABLE = "FORKS_OF_TESTS"
"""Environment variable with the folder of the wrappers, which the processes of a test run share, and the checkout."""
OTHERS = (
    *("anyio._backends._asyncio", "email.policy", "httpcore2", "importlib.metadata", "pytest", "truststore"),
    *("uvicorn.lifespan.on", "uvicorn.protocols.http.httptools_impl"),
    *("mcp.client.client", "mcp.server.lowlevel", "mcp.server.mcpserver", "mcp.server.streamable_http_manager"),
)
"""Modules of other packages that programs import, including late imports."""
LEFT_OUT = (
    "mcp_bindgen.mock.strategies",
    "mcp_bindgen.mock.fixtures",
    "mcp_bindgen.cli.__main__",
    "mcp_bindgen.__main__",
)
"""Modules that must not be imported in advance: pytest plugins and programs."""


def _stand_ins() -> Path:
    """Create wrappers of `python` and `mcp-bindgen`; the first use starts the process that forks for all of them."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, program in (("python", ""), (INSTALLED.name, INSTALLED)):
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} -IS {CLIENT} {folder}/socket {program} "$@"\n')
        (folder / name).chmod(0o755)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "socket"))
    listener.listen(100)
    ending, held = os.pipe()

    def start() -> None:
        select.select([listener], [], [])
        command = [sys.executable, "-m", "tests.harness.forks", str(listener.fileno())]
        serving = subprocess.Popen(
            command, cwd=ROOT, stdin=ending, pass_fds=[listener.fileno()], start_new_session=True, env=environment
        )
        listener.close()
        atexit.register(serving.wait)
        atexit.register(os.close, held)

    environment = {**os.environ, VARIABLE: f"{folder}:{ROOT}"}
    threading.Thread(target=start, daemon=True).start()
    return folder


def _shared() -> Path:
    """Return the folder of the wrappers of this test run."""
    if not hasattr(os, "fork"):
        return INSTALLED.parent
    if not os.environ.get(VARIABLE, "").endswith(f":{ROOT}"):
        os.environ[VARIABLE] = f"{_stand_ins()}:{ROOT}"
    return Path(os.environ[VARIABLE].partition(":")[0])


PYTHON = str(_shared() / "python")
"""Wrapper of this Python that starts programs at once; `mcp-bindgen` is in the same folder."""


def prepare() -> None:
    """Start the forking process, which takes seconds, before a test needs it."""
    if hasattr(os, "fork"):
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(Path(PYTHON).with_name("socket")))


def serve(number: int) -> None:
    """Fork for each request until the test run ends.

    Args:
        number: File descriptor of the listening socket.
    """
    package = import_module("mcp_bindgen")
    ours, plugins = walk_packages(package.__path__, "mcp_bindgen."), entry_points(group="pytest11")
    for name in [*(each.name for each in ours), *OTHERS, *(each.module for each in plugins)]:
        if not name.startswith(LEFT_OUT):
            import_module(name)
    gc.collect()
    gc.freeze()
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    started: dict[int, socket.socket] = {}
    with socket.socket(fileno=number) as listener:
        while True:
            waiting: list[Any] = [0, listener, woken, *started.values()]
            for ready in select.select(waiting, [], [])[0]:
                if ready is listener:
                    line, _ = listener.accept()
                    _start(line, started, (listener, woken, waker))
                elif ready is woken:
                    woken.recv(4096)
                    _reap(started)
                elif ready == 0:
                    for pid in started:
                        os.kill(pid, signal.SIGKILL)
                    return
                else:
                    for pid in [pid for pid, line in started.items() if line is ready]:  # a signal, or the client died
                        os.kill(pid, (ready.recv(1) or bytes([signal.SIGKILL]))[0])


def _start(line: socket.socket, started: dict[int, socket.socket], own: tuple[socket.socket, ...]) -> None:
    size, streams, _, _ = socket.recv_fds(line, 4, 3)
    if not size:  # a request by `prepare`
        line.close()
        return
    words, folder, variables = marshal.loads(line.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
    pid = os.fork()
    if pid:
        started[pid] = line
        for stream in streams:
            os.close(stream)
        return
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for each in (line, *started.values(), *own):
        each.close()
    os.setsid()
    for number, (stream, name) in enumerate(zip(streams, ("stdin", "stdout", "stderr"), strict=True)):
        os.dup2(stream, number)
        os.close(stream)
        errors = "backslashreplace" if number == 2 else "strict"
        opened = os.fdopen(number, "w" if number else "r", 1, "utf-8", errors, closefd=False)
        setattr(sys, name, opened)  # the streams of the serving process belong to other files
        setattr(sys, f"__{name}__", opened)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    time.tzset()
    code = 1
    try:
        _run(words)
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
    except BaseException as error:
        place = error.__traceback__
        while place and place.tb_frame.f_code.co_filename in (__file__, "<frozen runpy>"):
            place = place.tb_next
        sys.excepthook(type(error), error.with_traceback(place), place)
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            atexit.register(os.kill, os.getpid(), signal.SIGINT)
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    atexit._run_exitfuncs()  # noqa: SLF001 - a fork has no other way
    os._exit(code & 255)  # quickly: without tearing down modules


def _run(words: list[str]) -> None:
    """Run `python WORD...`."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    sys.path[:] = [*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), *sys.path[1:]]
    invalidate_caches()
    if words[0] == "-W":
        _, action, *words = words
        warnings.simplefilter(cast(Any, action))
    option, *rest = words
    if option == "-m":
        if rest[0] == "pytest":
            for module in list(sys.modules.values()):  # otherwise pytest warns that it cannot rewrite imported modules
                if type(module) is types.ModuleType:
                    module.__doc__ = "PYTEST_DONT_REWRITE"
        sys.argv = rest
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif option == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        module = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), vars(module))
    else:
        sys.argv = words
        sys.path.insert(0, str(Path(option).resolve().parent))
        runpy.run_path(option, run_name="__main__")


def _reap(started: dict[int, socket.socket]) -> None:
    """Report the exit codes of programs that have ended."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            line = started.pop(ended[0])
            with line, suppress(OSError):  # the client may have ended
                line.sendall(os.waitstatus_to_exitcode(ended[1]).to_bytes(2, "big", signed=True))


if __name__ == "__main__":
    serve(int(sys.argv[1]))
