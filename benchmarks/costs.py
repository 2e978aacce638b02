"""Measure what a process has cost so far (Linux)."""

from pathlib import Path


def processor_time(pid: int) -> float:
    """Return the processor seconds that the threads of a process have used."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def memory(pid: int, *, peak: bool = False) -> float:
    """Return the resident memory of a process in MiB: current, or at its peak."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    wanted = "VmHWM" if peak else "VmRSS"
    return next(int(line.split()[1]) for line in lines if line.startswith(wanted)) / 1024
