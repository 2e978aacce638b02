"""Measure a diff and how it grows: the real pairs, and schemas of 1,000 up to 10,000 definitions."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from mcp_bindgen.diff import compare
from mcp_bindgen.ir import Protocol, build
from mcp_bindgen.spec import EffectiveSchema, Store

ROUNDS = 3
SIZES = (1_000, 2_500, 5_000, 10_000)
FAMILY = 5
"""How many definitions belong to each method of a synthetic schema."""


def main() -> None:
    """Print the seconds and the ratios."""
    store = Store()
    models = {revision: build(store.effective(revision)) for revision in store.pins}
    for old, new in pairwise(models):
        compared = median(partial(compare, models[old], models[new]))
        print(f"{old} -> {new}: {compared * 1000:4.0f} ms, with start of the command {command(old, new):.2f} s")
    first = 0.0
    for size in SIZES:
        before, after = synthetic(size, changed=False), synthetic(size, changed=True)
        findings = len(compare(before, after, evidence=False).findings)
        bare, proved = (median(partial(compare, before, after, evidence=known)) for known in (False, True))
        first = first or proved
        print(
            f"{size:6} definitions, {findings:5} findings: {bare:5.2f} s, with evidence {proved:5.2f} s"
            f" = {proved / first:4.1f}x for {size / SIZES[0]:4.1f}x"
        )


def command(old: str, new: str) -> float:
    """Return the median seconds of the whole command."""
    words = [str(Path(sys.executable).with_name("mcp-bindgen")), "diff", old, new, "--format", "json"]
    times: list[float] = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def median(work: Callable[[], object]) -> float:
    """Return the median processor seconds of `ROUNDS` runs."""
    times: list[float] = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def synthetic(size: int, *, changed: bool) -> Protocol:
    """Return a revision of about `size` definitions; in the changed one every method differs in one of ten ways."""
    definitions: dict[str, Any] = {}
    members: list[dict[str, str]] = []
    for number in range(size // FAMILY):
        way = number % 10 if changed else -1
        if way == 0:
            continue
        name = f"M{number}"
        thing = f"{name}Renamed" if way == 1 else f"{name}Thing"
        fields: dict[str, Any] = {"label": {"type": "string"}, "size": {"type": "integer"}, "next": ref(f"{name}Link")}
        fields |= {"added": {"type": "string"}} if way == 2 else {}
        fields |= {"size": {"type": ["integer", "null"]}} if way == 3 else {}
        required = ["label", "size"] if way == 4 else ["label"]
        link: dict[str, Any] = {
            "type": "object",
            "properties": {"kind": {"enum": ["a", "b", *(["c"] if way == 5 else [])]}},
        }
        definitions |= {
            f"{name}Request": {
                "type": "object",
                "properties": {"method": {"const": f"m{number}/do"}, "params": ref(f"{name}RequestParams")},
                "required": ["method", "params"],
            },
            f"{name}RequestParams": {"type": "object", "properties": {"thing": ref(thing)}},
            f"{name}Result": {"type": "object", "properties": {"things": {"type": "array", "items": ref(thing)}}},
            thing: {"type": "object", "properties": fields, "required": required},
            f"{name}Link": link,
        }
        members.append(ref(f"{name}Request"))
    definitions["ClientRequest"] = {"anyOf": members}
    store = Store()
    return build(EffectiveSchema("synthetic", definitions, str(changed), {**store.semantics}))


def ref(name: str) -> dict[str, str]:
    """Return a reference to a definition."""
    return {"$ref": f"#/$defs/{name}"}


if __name__ == "__main__":
    main()
