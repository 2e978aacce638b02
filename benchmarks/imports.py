"""Measure the import of one revision and the use of one model, as ratios in one run.

Each case is a fresh interpreter; the figures are medians, less the interpreter's own start.
"""

import argparse
import statistics
import subprocess
import sys
import time

CASES = {
    "interpreter alone": "pass",
    "import pydantic": "import pydantic",
    "smallest pydantic model": (
        "from pydantic import BaseModel\nclass M(BaseModel):\n    x: int\nM(x=1).model_dump_json()"
    ),
    "ours: import a revision": "import mcp_bindgen.v2025_11_25",
    "ours: types, one model used": (
        "from mcp_bindgen.v2025_11_25 import types\ntypes.TextContent(text='x').model_dump_json()"
    ),
    "official SDK: mcp_types": "import mcp_types\nmcp_types.TextContent(type='text', text='x').model_dump_json()",
    "official SDK: mcp.types": "import mcp.types\nmcp.types.TextContent(type='text', text='x').model_dump_json()",
}


def main() -> None:
    """Print one line for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    times: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(rounds):
        for name, code in CASES.items():
            times[name].append(start(code))
    own = statistics.median(times["interpreter alone"])
    costs = {name: statistics.median(found) - own for name, found in times.items()}
    print(f"{'case':30} {'ms':>7} {'/ import pydantic':>18} {'/ smallest model':>18}")
    for name, cost in costs.items():
        if name != "interpreter alone":
            ratios = [cost / costs[base] for base in ("import pydantic", "smallest pydantic model")]
            print(f"{name:30} {cost * 1000:7.1f} {ratios[0]:17.2f}x {ratios[1]:17.2f}x")


def start(code: str) -> float:
    """Return the seconds that a fresh interpreter takes to run `code`; infinite when it cannot."""
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    return time.perf_counter() - begin if done.returncode == 0 else float("nan")


if __name__ == "__main__":
    main()
