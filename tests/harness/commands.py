"""Run the real command and other programs to completion, and compare the files that they write."""

from __future__ import annotations

import io
import json
import os
import random
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any
from unittest import mock

from mcp_bindgen.cli.app import run
from mcp_bindgen.spec.json import is_array, is_object
from tests.harness.forks import INSTALLED, PYTHON

ROOT = Path(__file__).parents[2]
SETTINGS: Mapping[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
SOURCE_ROOTS: Sequence[str] = SETTINGS["tool"]["hatch"]["build"]["dev-mode-dirs"]
"""The wings and the generated packages; everything takes them from this list in `pyproject.toml`."""
UPSTREAM = Path(__file__).parents[3] / "shared" / "upstream"
COMMAND = Path(PYTHON).with_name(INSTALLED.name)
"""A wrapper of the installed `mcp-bindgen` that starts at once."""

Done = subprocess.CompletedProcess[str]

PATIENCE = 900.0
"""Time limit of a program in seconds."""


def execute(
    *command: object, cwd: Path | None = None, stdin: str = "", code: int | None = None, **variables: str
) -> Done:
    """Run a program to its end; fail if it takes too long or if its exit code is not `code`, if given.

    Colour settings in the caller's environment are ignored.
    """
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    words, env = list(map(str, command)), plain | variables
    done = subprocess.run(words, cwd=cwd, input=stdin, env=env, capture_output=True, encoding="utf-8", timeout=PATIENCE)
    assert code in (None, done.returncode), f"{done.returncode}: {done.stdout}{done.stderr}"
    return done


def lint(*paths: Path, cwd: Path | None = None) -> None:
    """Refuse generated code that ruff does, also for unused, missing and unsorted imports.

    PYI042 is left out: it judges names of the schema.

    Args:
        paths: Files and folders.
        cwd: The current folder; ruff takes the packages in it for the code's own.
    """
    words = (
        "--isolated",
        "--no-cache",
        "--extend-select=F,I",
        "--ignore=PYI041,PYI042",
        "--line-length=110",
        "--output-format=concise",
    )
    execute(sys.executable, "-m", "ruff", "check", *words, *paths, code=0, cwd=cwd)


def bindgen(*arguments: object, cwd: Path | None = None, code: int | None = None, **variables: str) -> Done:
    """Run `mcp-bindgen`."""
    return execute(COMMAND, *arguments, cwd=cwd, code=code, **variables)


def inside(*arguments: object, cwd: Path | None = None, code: int | None = None, **variables: str) -> Done:
    """Run `mcp-bindgen` in this process: faster, and crashes show a traceback; `code` is the exit code, if given."""
    out, err = io.StringIO(), io.StringIO()
    words = list(map(str, arguments))
    found: object = 0
    with (
        mock.patch.object(sys, "argv", ["mcp-bindgen", *words]),
        mock.patch.object(sys.modules["__main__"], "__package__", "", create=True),  # shows how Python was started
        mock.patch.dict(os.environ, variables),
        chdir(cwd or Path.cwd()),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            run()
        except SystemExit as stop:
            found = stop.code
    assert isinstance(found, int)
    assert code in (None, found), f"{found}: {out.getvalue()}{err.getvalue()}"
    return Done(words, found, out.getvalue(), err.getvalue())


def on_terminal(*arguments: str, **variables: str) -> str:
    """Return the output of `mcp-bindgen` in a terminal with 80 columns."""
    ours, theirs = os.openpty()
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "CI")}
    environment = {**plain, "TERM": "xterm-256color", "COLUMNS": "80", **variables}
    parts: list[bytes] = []
    with subprocess.Popen([COMMAND, *arguments], stdin=theirs, stdout=theirs, env=environment) as process:
        os.close(theirs)
        with suppress(OSError), os.fdopen(ours, "rb", 0) as terminal:  # an error means that the other end is closed
            while part := terminal.read(4096):
                parts.append(part)
    assert process.returncode == 0, parts
    return b"".join(parts).decode().replace("\r\n", "\n")


def answered(*arguments: object, code: int = 0, cwd: Path | None = None) -> str:
    """Return the output of `mcp-bindgen`; its exit code must be `code` and its stderr empty."""
    done = inside(*arguments, cwd=cwd, code=code)
    assert done.stderr == ""
    return done.stdout


def complaint(*arguments: object, code: int = 2, cwd: Path | None = None) -> str:
    """Return the single line of stderr with which `mcp-bindgen` fails; stdout must be empty."""
    done = inside(*arguments, cwd=cwd, code=code)
    assert done.stdout == ""
    assert re.fullmatch(r"error: [^\n]+\n", done.stderr), done.stderr
    return done.stderr.strip()


def python(code: str, path: Path, *arguments: object, stdin: str = "") -> str:
    """Return the output of code in a new interpreter that imports from `path`; the code must not fail."""
    command = (PYTHON, "-W", "error", "-c", code, *arguments)
    return execute(*command, stdin=stdin, code=0, PYTHONPATH=str(path)).stdout


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return relative name -> content of all files below `folder`, except Python's caches."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def save(path: Path, document: object) -> Path:
    """Write `document` as JSON."""
    path.write_text(json.dumps(document), "utf-8")
    return path


def shuffled(node: Any, seed: int) -> Any:
    """Return a copy of a JSON document with the members of its objects in another order."""
    if is_object(node):
        members = [(name, shuffled(child, seed)) for name, child in node.items()]
        random.Random(seed).shuffle(members)
        return dict(members)
    return [shuffled(child, seed) for child in node] if is_array(node) else node
