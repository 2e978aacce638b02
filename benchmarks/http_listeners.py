"""1,000 concurrent `subscriptions/listen` streams and one change that all are told: ours, and the official SDK."""

from __future__ import annotations

import argparse
import resource
import selectors
import socket
import statistics
import sys
import time
from contextlib import ExitStack

from http_driver import PARSER, ask, connect, memory, post, serving

ACKNOWLEDGED, CHANGED = b"notifications/subscriptions/acknowledged", b"notifications/tools/list_changed"


def main() -> None:
    """Prints the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=1000)
    arguments = parser.parse_args()
    needed = 2 * arguments.streams + 64
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(needed, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    found: dict[str, list[list[float]]] = {"ours": [], "official SDK": []}
    for _ in range(arguments.rounds):
        for name, rounds in found.items():
            rounds.append(measure(name, arguments.streams))
    print(f"{arguments.streams} streams, {PARSER} of uvicorn")
    print(f"{'server':14} {'open, s':>8} {'first, ms':>10} {'last, ms':>9} {'MiB before':>11} {'KiB a stream':>13}")
    medians = {name: [statistics.median(one) for one in zip(*rounds, strict=True)] for name, rounds in found.items()}
    for name, (opening, first, last, before, each) in medians.items():
        print(f"{name:14} {opening:8.2f} {first * 1000:10.0f} {last * 1000:9.0f} {before:11.1f} {each:13.1f}")
    ratios = [ours / theirs for ours, theirs in zip(medians["ours"], medians["official SDK"], strict=True)]
    print("ours / official SDK: " + "  ".join(f"{ratio:.2f}x" for ratio in ratios))


def measure(name: str, count: int) -> list[float]:
    """One round: seconds to open all streams, seconds to the first and to the last message, memory."""
    with serving(name) as (pid, port), ExitStack() as stack, selectors.DefaultSelector() as selector:
        change = post(port, 1, "tools/call", "change", arguments={"text": "x"})
        ask(port, change)  # warm
        before = memory(pid)
        begin = time.perf_counter()
        for id_ in range(count):
            stream = stack.enter_context(connect(port))
            stream.sendall(post(port, id_, "subscriptions/listen", notifications={"toolsListChanged": True}))
            selector.register(stream, selectors.EVENT_READ, bytearray())
        hear(selector, ACKNOWLEDGED, count)
        opening = time.perf_counter() - begin
        after = memory(pid)
        begin = time.perf_counter()
        with connect(port) as caller:
            caller.sendall(change)
            times = hear(selector, CHANGED, count)
            caller.recv(1 << 16)
        return [opening, times[0] - begin, times[-1] - begin, before, (after - before) * 1024 / count]


def hear(selector: selectors.BaseSelector, words: bytes, count: int) -> list[float]:
    """When each of the streams has said something; it must say it once."""
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
