"""Judge many random tools: `python -m tests.lowering.run_judge [VALUES] [SEED] [PROFILE...]`.

Prints the number of judged values and each kind of fault with its smallest example. Exit code 1 if there is one.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter

from mcp_bindgen.lowering import lower, names, profile

from .judge import Fault, Tally, judged
from .schemas import Schemas


def main(values: int, seed: int, profiles: list[str]) -> int:
    """Judge until `values` values were judged; return the number of faults."""
    known, tally = [profile(name) for name in profiles], Tally()
    worst: dict[str, tuple[int, int, dict[str, object], Fault]] = {}
    verdicts = {name: Counter[str]() for name in profiles}
    while tally.arguments + tally.documents < values:
        seed += 1
        tool = Schemas(random.Random(seed)).tool()
        for one in known:
            verdicts[one.name][lower(tool, one).verdict] += 1
            for fault in judged(tool, one, random.Random(seed), 24, tally):
                tally.faults += 1
                kind = fault.kind.partition(" as ")[0].partition(":")[0].partition(" at ")[0]
                size = len(json.dumps(tool)) + len(repr(fault.value))
                if kind not in worst or size < worst[kind][0]:
                    worst[kind] = size, seed, tool, fault
    for kind, (_, number, tool, fault) in sorted(worst.items()):
        print(f"{kind}: seed {number}\n  {json.dumps(tool['inputSchema'])}\n  {fault}\n  {lower(tool, fault.profile)}")
    for name, found in verdicts.items():
        print(name, dict(found.most_common()))
    print(f"{tally.arguments} arguments, {tally.documents} documents, {tally.faults} faults, last seed {seed}")
    return tally.faults


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    sys.exit(1 if main(wanted, first, sys.argv[3:] or list(names())) else 0)
