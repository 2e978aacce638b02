"""A real PostgreSQL in its own folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_PATIENCE = 60.0
_USER = "postgres"
_QUICK = ("fsync=off", "synchronous_commit=off", "shared_buffers=16MB", "max_connections=30", "listen_addresses=")


def _program(name: str) -> str:
    """Return a program of PostgreSQL; Debian keeps them in folders by version, which are not in PATH."""
    places = [str(path) for path in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    found = shutil.which(name, path=os.pathsep.join([*places, os.environ.get("PATH", "")]))
    if found is None:
        missing = "there is no PostgreSQL"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    return str(found)


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run a PostgreSQL that listens on a socket in a folder; yield its connection string.

    PostgreSQL refuses to run as root. As root, this runs it as the user that the PostgreSQL packages create.
    """
    initdb, server, is_ready = map(_program, ("initdb", "postgres", "pg_isready"))
    other = _USER if os.geteuid() == 0 else None
    with TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if other is not None:
            shutil.chown(folder, other)
        making = [initdb, "--pgdata", str(folder / "data"), "--username", _USER, "--auth", "trust", "--no-sync"]
        subprocess.run(making, check=True, capture_output=True, timeout=_PATIENCE, cwd=folder, user=other)
        options = [part for one in _QUICK for part in ("-c", one)]
        process = subprocess.Popen(
            [server, "-D", str(folder / "data"), "-k", name, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            user=other,
        )
        try:
            while subprocess.run([is_ready, "--host", name, "--quiet"], timeout=_PATIENCE).returncode:
                assert process.poll() is None, "postgres has ended"
                time.sleep(0.05)
            yield f"host={name} user={_USER} dbname=postgres"
        finally:
            process.send_signal(signal.SIGINT)  # fast shutdown: does not wait for clients
            process.wait(_PATIENCE)
