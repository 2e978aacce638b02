"""Run a server, forward its standard streams, and record every message to a file: `tap.py FILE COMMAND...`.

Lines of the file: `< message` from the server, `> message` to the server, `! text` for a line of its stderr, and
`exit CODE` at the end.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import IO


def main() -> None:
    """Run until the server ends."""
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
    """Copy line by line until the end of the source."""
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
