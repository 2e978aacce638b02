"""Start workers of `examples/cluster_server.py` quickly, as forks of a process that has imported everything.

    python -m tests.harness.cluster_worker REDIS LEASE TIMEOUT

Each line of stdin is a port, `PORT`. For each, a line `PORT PID` on stdout has the process id of the new worker.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio

from mcp_bindgen.cluster.session_registry import RedisStore
from tests.harness.commands import ROOT


def example(path: Path) -> Any:
    """Return an example as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Start a worker for each line."""
    url, lease, timeout = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    serve = example(ROOT / "examples" / "cluster_server.py").serve
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        port = int(line)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(0)
            anyio.run(serve, port, RedisStore(url, lease=lease, timeout=timeout))
            os._exit(0)
        print(port, pid, flush=True)


if __name__ == "__main__":
    main()
