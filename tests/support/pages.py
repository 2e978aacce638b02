"""Pages of documentation, read as a person follows them: files to save, and commands with their output."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SECONDS = 120.0
"""Time limit of a page."""

_BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
_FILE = re.compile(r"`(?P<name>[\w./-]+\.\w+)`:\n+\Z")
_END = "--- end of output, exit code "


@dataclass(frozen=True)
class File:
    """A file to save: a block below a line that ends with its name, "Save this as `server.py`:"."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command of a `console` block with the output shown below it; a line `...` stands for any output."""

    line: str
    shown: str

    @property
    def is_installation(self) -> bool:
        """True if the command installs packages, which the tests have."""
        return self.line.startswith("pip install")

    def prints(self, output: str) -> bool:
        """Return True if the output is the one shown."""
        return re.fullmatch(re.escape(self.shown).replace(r"\.\.\.", r"(?s:.*)"), output) is not None


def steps(page: Path) -> Iterator[File | Command]:
    """Yield the files and commands of a page, in their order."""
    text = page.read_text("utf-8")
    for block in _BLOCK.finditer(text):
        if block["language"] == "console":
            for part in re.split(r"^\$ ", block["text"], flags=re.M)[1:]:
                line, _, shown = part.partition("\n")
                yield Command(line, shown.strip("\n"))
        elif name := _FILE.search(text[: block.start()]):
            yield File(name["name"], block["text"])


def follow(page: Path, folder: Path, ports: dict[str, int]) -> None:
    """Save the files of a page and run its commands, in one folder and one shell.

    Args:
        page: The page.
        folder: An empty folder.
        ports: The port to use for each port of the page.

    Raises:
        AssertionError: A command prints another output than the one shown, or fails.
    """
    variables = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    shell = subprocess.Popen(
        ["bash"],
        cwd=folder,
        env={**variables, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{variables['PATH']}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    limit = threading.Timer(SECONDS, os.killpg, (shell.pid, signal.SIGKILL))
    limit.start()
    try:
        for step in steps(page):
            if isinstance(step, File):
                (folder / step.name).write_text(_moved(step.text, ports), "utf-8")
            elif not step.is_installation:
                _run(shell, Command(_moved(step.line, ports), _moved(step.shown, ports)))
    finally:
        limit.cancel()
        os.killpg(shell.pid, signal.SIGKILL)
        shell.communicate()


def _run(shell: subprocess.Popen[str], command: Command) -> None:
    assert shell.stdin is not None
    assert shell.stdout is not None
    shell.stdin.write(f'{command.line}\necho "{_END}$?"\n')
    shell.stdin.flush()
    printed: list[str] = []
    for line in iter(shell.stdout.readline, ""):
        if line.startswith(_END):
            assert line == f"{_END}0\n", f"$ {command.line}\n{''.join(printed)}{line}"
            break
        printed.append(line)
    if command.line.endswith("&"):  # the server prints its address later
        printed += [shell.stdout.readline() for _ in command.shown.splitlines()[len(printed) :]]
    assert command.prints("".join(printed).strip("\n")), f"$ {command.line}\n{''.join(printed)}"


def _moved(text: str, ports: dict[str, int]) -> str:
    for port, other in ports.items():
        text = text.replace(f":{port}", f":{other}")
    return text
