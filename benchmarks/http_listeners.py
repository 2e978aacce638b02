"""1,000 concurrent `subscriptions/listen` streams and changes that all are told: ours, and the official SDK."""

from __future__ import annotations

import argparse
import resource
import selectors
import socket
import statistics
import sys
import time
from contextlib import ExitStack
from functools import partial

from costs import memory
from http_driver import ask, connect, post, serving
from rounds import in_turn, report

ACKNOWLEDGED, CHANGED = b"notifications/subscriptions/acknowledged", b"notifications/tools/list_changed"
CHANGES = 5


COLUMNS = {
    "open, s": 2,
    "1st change: first, ms": 0,
    "last, ms": 0,
    "later ones: first, ms": 0,
    "last, ms ": 0,
    "MiB before": 1,
    "KiB a stream": 1,
}


def main() -> None:
    """Print the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=1000)
    arguments = parser.parse_args()
    needed = 2 * arguments.streams + 64
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(needed, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    print(f"{arguments.streams} streams")
    servers = {name: partial(measure, name, arguments.streams) for name in ("ours", "official SDK")}
    report(in_turn(arguments.rounds, servers), COLUMNS)


def measure(name: str, count: int) -> list[float]:
    """Measure one round of one server: what `COLUMNS` says; of the changes after the first one, the median."""
    with serving(name) as (pid, port), ExitStack() as streams, selectors.DefaultSelector() as selector:
        change = post(port, 1, "tools/call", "change", arguments={"text": "x"})
        ask(port, change)  # warm
        before = memory(pid)
        begin = time.perf_counter()
        for id_ in range(count):
            stream = streams.enter_context(connect(port))
            stream.sendall(post(port, id_, "subscriptions/listen", notifications={"toolsListChanged": True}))
            selector.register(stream, selectors.EVENT_READ, bytearray())
        hear(selector, ACKNOWLEDGED, count)
        opening = time.perf_counter() - begin
        each = (memory(pid) - before) * 1024 / count
        told: list[tuple[float, float]] = []
        caller = streams.enter_context(connect(port))
        for _ in range(CHANGES):
            begin = time.perf_counter()
            caller.sendall(change)
            times = hear(selector, CHANGED, count)
            told.append((times[0] - begin, times[-1] - begin))
            caller.recv(1 << 16)
        later = [statistics.median(one) for one in zip(*told[1:], strict=True)]
        return [opening, *(seconds * 1000 for seconds in (*told[0], *later)), before, each]


def hear(selector: selectors.BaseSelector, words: bytes, count: int) -> list[float]:
    """Return when each of the streams has received an event; fail if one receives it twice."""
    times: list[float] = []
    while len(times) < count:
        ready = selector.select(30)
        if not ready:
            sys.exit(f"{count - len(times)} streams are silent")
        for key, _ in ready:
            stream: socket.socket = key.fileobj  # type: ignore[assignment]
            key.data.extend(stream.recv(1 << 16))
            if words in key.data:
                assert key.data.count(words) == 1
                key.data.clear()
                times.append(time.perf_counter())
    return times


if __name__ == "__main__":
    main()
