"""Execute pages of documentation as a reader would: files to save, commands with their output, and fragments.

A page runs in an empty folder, from its first block to its last:

- A block below a line that ends with a file name, "Save this as `server.py`:", is saved.
- The commands of a `console` block begin with `$ `; each prints the lines below it. A line `...` matches any lines,
  and `...` in a line matches any text. Ports, times, random ids and numbers of files may differ everywhere (`VARYING`).
- The commands of a `bash` block run, and their output is not compared. `$CHECKOUT` is the folder of this checkout. A
  foreground server is stopped after it has printed its address.
- A command must succeed, unless the next one is `echo $?`.
- Python without a file name is a fragment. The fragments of a page are type-checked as one module.
- An HTML comment `<!-- LANGUAGE [NAME]` is a block that readers do not see: names that fragments use, files that a
  reader has.
- A comment `<!-- not run: REASON -->` excludes the next block.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from mcp_bindgen.cli.app import run
from tests.interop.processes import node

from .commands import ROOT
from .forks import PYTHON
from .processes import free_port

SECONDS = 120.0
"""Time limit of a page."""
VARYING = {
    "PORT": r"(?<=127\.0\.0\.1:)\d+",
    "TIME": r"\b\d+(\.\d+)? ?(ms|s|seconds)\b|^ *\d+\.\d{3}(?= [<>] )|\b\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)",
    "ID": r"\b[0-9a-f]{16,}\b",
    "FILES": r"\b\d+ files\b",
}
"""Patterns of output that varies between runs."""
LANGUAGES = {"bash", "console", "go", "jinja", "json", "mermaid", "python", "text", "toml", "typescript", "yaml"}

_BLOCK = re.compile(
    r"""
    (?:^<!--\ not\ run:\ (?P<reason>[^\n]+)\ -->\n+)?
    (?:
      ^(?P<indent>\ *)```(?P<language>\w*)\n (?P<text>.*?) ^(?P=indent)```$
      | ^<!--\ (?P<hidden>\w+)(?:\ (?P<name>[^\s>]+))?\n (?P<content>.*?) ^-->$
    )
    """,
    re.M | re.S | re.X,
)
_FILE = re.compile(r"`(?P<name>[\w./-]+\.\w+)`:\n+\Z")
_END = "--- end of output, exit code "
_NOT_PLAIN = re.compile(r"[|&;<>$*~\\#]|^mcp-bindgen (dev|gateway|mock|tap)\b| --verbose\b| --language markdown\b")
_SERVES = re.compile(r" --(http|listen) (?!.*&$)")


@dataclass(frozen=True)
class Block:
    """A block of a page.

    Attributes:
        language: The language, in one word.
        text: The content.
        line: The number of the first line, from 1.
        name: The file to save the block as.
        reason: The reason why the block is not run.
    """

    language: str
    text: str
    line: int = field(default=0, compare=False)
    name: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Command:
    """A command with the output shown below it, or None if the page shows no output."""

    line: str
    shown: str | None = None

    @property
    def is_installation(self) -> bool:
        """True if the command installs packages, which the test environment already has."""
        return self.line.startswith("pip install")

    @property
    def starts_npm_package(self) -> bool:
        """True if the command starts a server of an npm package; a dry run of `install` starts nothing."""
        return re.search(r"\bnpx\b(?!.* --dry-run\b)", self.line) is not None

    @property
    def is_plain(self) -> bool:
        """True if `mcp-bindgen` runs without shell syntax and without a server: it can run in this process."""
        return self.line.startswith("mcp-bindgen ") and not _NOT_PLAIN.search(self.line)

    def prints(self, output: str) -> bool:
        """Return True if the output matches the page."""
        if self.shown is None:
            return True
        shown = re.escape(_constant(self.shown)).replace(r"\.\.\.", r"(?s:.*)")
        return re.fullmatch(shown, _constant(output)) is not None


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page in order."""
    text = page.read_text("utf-8")
    for found in _BLOCK.finditer(text):
        part = "content" if found["hidden"] else "text"
        named = _FILE.search(text[: found.start()])
        yield Block(
            found["hidden"] or found["language"],
            re.sub(rf"^{found['indent'] or ''}", "", found[part], flags=re.M),
            text[: found.start(part)].count("\n") + 1,
            found["name"] or (named["name"] if named and not found["hidden"] else None),
            found["reason"],
        )


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a block."""
    if block.language == "console":
        for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
            line, _, shown = part.partition("\n")
            yield Command(line, shown.strip("\n"))
    elif block.language == "bash":
        for line in block.text.replace("\\\n", " ").splitlines():
            if line.strip():
                yield Command(re.sub(r"\s{2,}# .*$", "", line).strip())


def modules(page: Path) -> Iterator[str]:
    """Yield the Python code of a page: each program, and all fragments as one module.

    Each block keeps its line numbers. Fragments with `await` become functions.
    """
    fragments: list[str] = []
    for block in blocks(page):
        if block.language != "python" or block.reason is not None:
            continue
        if block.name is not None:
            yield "\n" * (block.line - 1) + block.text
            continue
        code = compile(block.text, page.name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        head = "async def fragment() -> None:" if code.co_flags & inspect.CO_COROUTINE else ""
        fragments += [""] * (block.line - 2 - len(fragments))
        fragments += [head, *textwrap.indent(block.text, "    " if head else "").splitlines()]
    if fragments:
        yield "\n".join([*fragments, ""])


def follow(page: Path, folder: Path) -> None:
    """Save the files of a page and run its commands in one folder and one shell.

    Args:
        page: The page.
        folder: An empty folder.

    Raises:
        AssertionError: A command fails, or its output differs from the page.
    """
    with _Reader(folder, page.read_text("utf-8")) as reader:
        for block in blocks(page):
            if block.reason is not None:
                continue
            if block.name is not None:
                reader.save(block.name, block.text)
            steps = [command for command in commands(block) if not command.is_installation]
            for number, step in enumerate(steps):
                reader.take(step, may_fail=[one.line for one in steps[number + 1 : number + 2]] == ["echo $?"])


class _Reader:
    """A shell in a folder, with free ports in place of the ports of the page."""

    def __init__(self, folder: Path, text: str) -> None:
        self._folder = folder
        self._ports = {port: free_port() for port in re.findall(r"(?:127\.0\.0\.1|localhost):(\d{4})\b", text)}

    def __enter__(self) -> _Reader:
        foreign = ("COLUMNS", "FORCE_COLOR", "MCP_BINDGEN_HOME", "XDG_DATA_HOME")
        plain = {name: value for name, value in os.environ.items() if name not in foreign}
        home = {"HOME": str(self._folder / ".home"), "XDG_CACHE_HOME": str(Path.home() / ".cache")}
        own = ROOT / "tests/harness/bin"  # `npx` and `uvx` without the network
        folders = own, Path(PYTHON).parent, Path(sys.executable).parent, Path(node()).parent, plain["PATH"]
        self._shell = subprocess.Popen(
            ["bash"],
            cwd=self._folder,
            env={**plain, **home, "PATH": os.pathsep.join(map(str, folders)), "CHECKOUT": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._limit = threading.Timer(SECONDS, os.killpg, (self._shell.pid, signal.SIGKILL))
        self._limit.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._limit.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.communicate()

    def save(self, name: str, text: str) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._moved(text), "utf-8")

    def take(self, command: Command, may_fail: bool) -> None:
        command = Command(self._moved(command.line), command.shown and self._moved(command.shown))
        serves = command.shown is None and _SERVES.search(command.line)
        line = f"{command.line} &" if serves else command.line
        printed, code = self._inside(line) if command.is_plain else self._outside(line)
        if line.endswith("&"):
            printed += self._address(printed)
        if serves:
            self._outside("kill $!; wait $!")
        assert may_fail or code == 0, f"$ {command.line}\n{printed}exit code {code}"
        assert command.prints(printed.strip("\n")), f"$ {command.line}\n{printed}"

    def _address(self, printed: str) -> str:
        """Read until a background server has printed its address."""
        assert self._shell.stdout is not None
        later = ""
        while "listening on " not in printed + later:
            line = self._shell.stdout.readline()
            assert line, f"no server listens: {printed}{later}"
            later += line
        return later

    def _outside(self, line: str) -> tuple[str, int]:
        """Run a line in the shell."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f'{{ {line}\n}} < /dev/null\ncode=$?; echo "{_END}$code"; (exit $code)\n')
        self._shell.stdin.flush()
        printed = ""
        for output in iter(self._shell.stdout.readline, ""):
            before, mark, code = output.partition(_END)
            printed += before
            if mark:
                return printed, int(code)
        raise AssertionError(f"$ {line}\n{printed}the shell ended")

    def _inside(self, line: str) -> tuple[str, int]:
        """Run `mcp-bindgen` in this process, with the state of the shell, as an installed package."""
        state, _ = self._outside("pwd; env")
        working, *variables = state.splitlines()
        known = dict(one.split("=", 1) for one in variables if re.match(r"\w+=", one))
        output, modules, path = io.StringIO(), set(sys.modules), sys.path[:]
        sys.path[:0] = filter(None, known.get("PYTHONPATH", "").split(os.pathsep))
        with (
            contextlib.chdir(working),
            mock.patch.dict(os.environ, known, clear=True),
            mock.patch.object(sys, "argv", shlex.split(line)),
            mock.patch.object(logging.getLogger(), "handlers", []),
            mock.patch("mcp_bindgen.emit.python.installation.is_checkout", return_value=False),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(output),
        ):
            code: object = 0
            try:
                run()
            except SystemExit as stop:
                code = stop.code
        sys.path[:] = path
        for name in set(sys.modules) - modules:  # another page may have modules with the same names
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(self._folder)):
                del sys.modules[name]
        assert isinstance(code, int)
        self._outside(f"(exit {code})")
        return output.getvalue(), code

    def _moved(self, text: str) -> str:
        for port, other in self._ports.items():
            text = text.replace(f":{port}", f":{other}")
        return text


def _constant(output: str) -> str:
    for name, pattern in VARYING.items():
        output = re.sub(pattern, name, output, flags=re.M)
    return output
