"""Measure generation and how it grows: all five revisions, and one revision ten times larger."""

import os
import statistics
from collections.abc import Callable
from typing import Any

from mcp_bindgen.emit import Model, Options
from mcp_bindgen.emit.python.bindings import emit
from mcp_bindgen.ir import build
from mcp_bindgen.spec import EffectiveSchema, Store

ROUNDS = 3
FACTOR = 10
PASSES = 30_000_000  # of an empty loop, the unit on machines of unsteady speed


def main() -> None:
    """Print the seconds and the ratios."""
    store = Store()
    every = median(lambda: [run(store.effective(revision)) for revision in store.pins])
    one = store.effective("2025-11-25")
    small, large = median(lambda: run(one)), median(lambda: run(enlarged(one)))
    unit = median(loop_once)
    print(f"all {len(store.pins)} revisions: {every:.2f} s = {every / unit:.1f} loops of {PASSES:,} passes")
    print(f"2025-11-25: {small:.2f} s; {FACTOR} times as many definitions: {large:.2f} s = {large / small:.1f}x")


def loop_once() -> None:
    """Run the loop that is the unit."""
    for _ in range(PASSES):
        pass


def run(source: EffectiveSchema) -> dict[str, str]:
    """Generate one package in memory."""
    return emit(Model(build(source)), Options("benchmark", "benchmark"))


def median(work: Callable[[], object]) -> float:
    """Return the median processor seconds of `ROUNDS` runs, programs that they start included."""
    times: list[float] = []
    for _ in range(ROUNDS):
        begin = sum(os.times()[:4])
        work()
        times.append(sum(os.times()[:4]) - begin)
    return statistics.median(times)


def enlarged(source: EffectiveSchema) -> EffectiveSchema:
    """Return `source` with `FACTOR` copies of each definition and each method under names of their own."""
    definitions: dict[str, Any] = dict(source.definitions)
    for copy in range(1, FACTOR):
        for name, schema in source.definitions.items():
            definitions[f"X{copy}{name}"] = renamed(schema, copy)
    for union in source.semantics["unions"]:
        if union in definitions:
            members = [
                member
                for copy in range(FACTOR)
                for member in definitions[f"X{copy}{union}" if copy else union]["anyOf"]
            ]
            definitions[union] = {"anyOf": members}
    results = {
        f"x{copy}/{method}": f"X{copy}{result}"
        for copy in range(1, FACTOR)
        for method, result in source.semantics["results"].items()
    }
    semantics = {**source.semantics, "results": {**source.semantics["results"], **results}}
    return EffectiveSchema(source.revision, definitions, source.digest, semantics, source.docs)


def renamed(node: Any, copy: int) -> Any:
    """Return `node` with references and methods that lead to the copies."""
    if isinstance(node, list):
        return [renamed(item, copy) for item in node]
    if not isinstance(node, dict):
        return node
    result = {key: renamed(value, copy) for key, value in node.items()}
    if isinstance(node.get("$ref"), str):
        result["$ref"] = node["$ref"].replace("#/$defs/", f"#/$defs/X{copy}")
    method = node.get("properties", {}).get("method", {})
    if isinstance(method, dict) and "const" in method:
        result["properties"]["method"] = {**method, "const": f"x{copy}/{method['const']}"}
    return result


if __name__ == "__main__":
    main()
