"""Echo servers over stdio, side by side: ours, the official SDK's low-level server, and a loop that checks nothing.

A raw driver writes prepared requests and counts answers, so that only the servers differ.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
SERVERS = {
    "ours": [HERE / "echo_server.py"],
    "official SDK": [HERE / "peers" / "sdk_server.py"],
    "bare loop": [HERE / "peers" / "bare_loop.py"],
}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


@dataclass
class Figures:
    """What was measured of one server, a value for each round."""

    pipelined: list[float] = field(default_factory=list)
    single: list[float] = field(default_factory=list)
    start: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)


def main() -> None:
    """Prints the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=4000)
    arguments = parser.parse_args()
    found = {name: Figures() for name in SERVERS}
    for _ in range(arguments.rounds):
        for name, command in SERVERS.items():
            measure([sys.executable, *map(str, command)], arguments.requests, found[name])
    print(f"{'server':14} {'64 in flight/s':>15} {'one by one/s':>13} {'start ms':>9} {'peak MiB':>9}")
    medians = {
        name: [statistics.median(values) for values in vars(figures).values()] for name, figures in found.items()
    }
    for name, (pipelined, single, start, memory) in medians.items():
        print(f"{name:14} {pipelined:15.0f} {single:13.0f} {start * 1000:9.0f} {memory:9.1f}")
    for other in ("official SDK", "bare loop"):
        ratios = [ours / theirs for ours, theirs in zip(medians["ours"], medians[other], strict=True)]
        print(f"ours / {other:12}: " + "  ".join(f"{ratio:.2f}x" for ratio in ratios))


def measure(command: list[str], requests: int, figures: Figures) -> None:
    """One round of one server."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdin is not None
    assert process.stdout is not None
    sink, source = process.stdin.fileno(), process.stdout.fileno()
    write(sink, INITIALIZE)
    read(source, 1)
    figures.start.append(time.perf_counter() - begin)
    write(sink, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    for in_flight, rates in ((64, figures.pipelined), (1, figures.single)):
        count = requests if in_flight > 1 else requests // 4
        rates.append(drive(sink, source, count, in_flight))
    figures.memory.append(peak(process.pid))
    process.stdin.close()
    process.wait(10)


def drive(sink: int, source: int, count: int, in_flight: int) -> float:
    """Requests per second, with `in_flight` of them on their way at any time."""
    lines = [
        json.dumps(
            {
                "jsonrpc": "2.0",
                "id": i,
                "method": "tools/call",
                "params": {"name": "echo", "arguments": {"text": f"hello {i}"}},
            }
        ).encode()
        + b"\n"
        for i in range(1, count + 1)
    ]
    begin = time.perf_counter()
    sent, done = min(in_flight, count), 0
    os.write(sink, b"".join(lines[:sent]))
    while done < count:
        arrived = os.read(source, 1 << 20).count(b"\n")
        done += arrived
        if sent < count:
            os.write(sink, b"".join(lines[sent : sent + arrived]))
            sent = min(count, sent + arrived)
    return count / (time.perf_counter() - begin)


def write(sink: int, message: object) -> None:
    """Writes one message."""
    os.write(sink, json.dumps(message).encode() + b"\n")


def read(source: int, count: int) -> None:
    """Reads until `count` lines have come."""
    while count > 0:
        count -= os.read(source, 1 << 20).count(b"\n")


def peak(pid: int) -> float:
    """The most memory that a process has held, in MiB (Linux)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


if __name__ == "__main__":
    main()
