"""A real Redis in its own folder, which tests may stop, kill and restart."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import RedisError

PATIENCE = 60.0
"""Time limit in seconds."""

ANSWER_SECONDS = 30.0
"""Timeout in seconds for stores of a running Redis; on a busy machine, a response can take longer than the
default of two seconds.
"""


class RedisServer:
    """A Redis that listens on a socket in a folder; it persists each command before it responds.

    Args:
        folder: The folder; its path must be short.
        options: Additional options of redis-server.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self._socket = folder / "redis"
        self.url = f"unix://{self._socket}"
        self.client: Any = Redis.from_url(self.url)
        durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        place = ["--port", "0", "--unixsocket", str(self._socket), "--dir", str(folder)]
        self._command = [_program(), *place, *durable, *options]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start Redis and wait until it responds."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self.client.ping()
                return
            except RedisError:
                assert self._process.poll() is None, "redis-server has ended"
                assert time.monotonic() < end, "redis-server does not answer"
                time.sleep(0.02)

    def stop(self) -> None:
        """Kill Redis, possibly in the middle of its work."""
        self.client.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Suspend Redis during the block."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)


def _program() -> str:
    found = shutil.which("redis-server")
    if found is None:
        missing = "there is no redis-server"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    return str(found)


@contextmanager
def redis_server(folder: Path, *options: str) -> Iterator[RedisServer]:
    """Run a Redis server."""
    server = RedisServer(folder, *options)
    server.start()
    try:
        yield server
    finally:
        server.stop()
