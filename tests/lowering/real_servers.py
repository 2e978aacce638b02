"""Verdicts of real servers: `python -m tests.lowering.real_servers FOLDER [VALUES]`.

FOLDER holds contracts (`mcp-bindgen contract export SERVER --out FOLDER/server.json`). Prints a Markdown table with the
number of each verdict for each profile, after judging VALUES random arguments and documents of each tool (default 10).
If openai-agents, anthropic or pydantic-ai are installed, their transformers get the same tools and the same judge. Exit
code 1 if a lowered tool is at fault.
"""

from __future__ import annotations

import copy
import importlib
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import jsonschema_rs

from mcp_bindgen.lowering import Verdict, lower, names, profile
from tests.harness.json_instances import Instances

from .judge import Tally, judged

Transform = Callable[[dict[str, Any]], dict[str, Any]]


def main(folder: Path, count: int) -> int:
    """Print both tables; return the number of faults."""
    files = sorted(folder.glob("*.json"))
    tools = [tool for file in files for tool in json.loads(file.read_text("utf-8"))["tools"]]
    print(f"{len(tools)} tools of {len(files)} servers\n")
    verdicts = [str(one) for one in Verdict]
    print(f"| profile | {' | '.join(verdicts)} | arguments | documents | faults |")
    print(f"| --- |{' --- |' * (len(verdicts) + 3)}")
    faults = 0
    for name in names():
        known, tally = profile(name), Tally()
        found = [fault for tool in tools for fault in judged(tool, known, random.Random(tool["name"]), count, tally)]
        counts = Counter(lower(tool, known).verdict for tool in tools)
        shown = " | ".join(str(counts[one]) for one in Verdict)
        print(f"| `{name}` | {shown} | {tally.arguments} | {tally.documents} | {len(found)} |", flush=True)
        faults += len(found)
    print("\n| transformer | refused | unsound | loses calls | no fault found |\n| --- | --- | --- | --- | --- |")
    examples: list[str] = []
    for title, transform in _transformers():
        results = [_compared(tool, transform, count) for tool in tools]
        counted = Counter(kind for kind, _ in results)
        shown = " | ".join(str(counted[one]) for one in ("refused", "unsound", "loses", "none"))
        print(f"| {title} | {shown} |", flush=True)
        found_unsound = (f"{tool['name']}: {one}" for tool, (_, one) in zip(tools, results, strict=True) if one)
        examples += [f"{title}: {one}" for one in islice(found_unsound, 1)]
    print("\n" + "\n".join(examples))
    return faults


def _transformers() -> Iterator[tuple[str, Transform]]:
    candidates: list[tuple[str, str, Callable[[Any], Transform]]] = [
        ("openai-agents", "agents.strict_schema", lambda module: module.ensure_strict_json_schema),
        ("anthropic", "anthropic", lambda module: module.transform_schema),
        (
            "pydantic-ai-slim",
            "pydantic_ai.profiles.openai",
            lambda module: lambda schema: module.OpenAIJsonSchemaTransformer(schema, strict=True).walk(),
        ),
    ]
    for package, name, found in candidates:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        yield f"{package} {version(package)}", found(module)


def _compared(tool: dict[str, Any], transform: Transform, count: int) -> tuple[str, str]:
    """Return the result of a transformer for a tool, and the value that shows an unsound schema.

    An absent member and null count as the same value: the transformers have no decoder, so their users drop null.
    """
    rng, source = random.Random(tool["name"]), tool["inputSchema"]
    try:
        lowered = transform(copy.deepcopy(source))
        target = jsonschema_rs.validator_for(lowered, offline=True)
    except Exception:
        return "refused", ""
    judge, loses = jsonschema_rs.validator_for(source, offline=True), False
    arguments, documents = Instances(source, rng), Instances(lowered, rng)
    for index in range(count * 2):
        value = documents.sample(index)
        is_valid = isinstance(value, dict) and target.is_valid(value)
        if is_valid and not any(map(judge.is_valid, (value, _dropped(value)))):
            return "unsound", json.dumps(value)
        value = arguments.value()
        loses = loses or (isinstance(value, dict) and judge.is_valid(value) and not target.is_valid(value))
    return ("loses" if loses else "none"), ""


def _dropped(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _dropped(one) for name, one in value.items() if one is not None}
    return [_dropped(one) for one in value] if isinstance(value, list) else value


if __name__ == "__main__":
    sys.exit(1 if main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10) else 0)
