"""Runs a server, passes on what it says and hears over stdio, and writes it all down: `tap.py FILE COMMAND...`.

Lines of the file: `< message` for what the server said, `> message` for what it heard, `! text` for what it wrote to
stderr, and `exit CODE` in the end.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import IO


def main() -> None:
    """Ends when the server does."""
    file, *command = sys.argv[1:]
    with open(file, "ab", buffering=0) as log:  # noqa: PTH123
        server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        threading.Thread(target=copy, args=(sys.stdin.buffer, server.stdin, log, b"> "), daemon=True).start()
        complaints = threading.Thread(target=copy, args=(server.stderr, sys.stderr.buffer, log, b"! "))
        complaints.start()
        copy(server.stdout, sys.stdout.buffer, log, b"< ")
        complaints.join()
        log.write(b"exit %d\n" % server.wait())


def copy(source: IO[bytes], sink: IO[bytes], log: IO[bytes], mark: bytes) -> None:
    """Copies line by line, until there are no more."""
    for line in iter(source.readline, b""):
        log.write(mark + line)
        try:
            sink.write(line)
            sink.flush()
        except BrokenPipeError:
            break
    if sink is not sys.stderr.buffer:
        sink.close()


if __name__ == "__main__":
    main()
