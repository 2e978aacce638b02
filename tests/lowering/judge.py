"""Judge of lowered tools: jsonschema-rs with the original schema, on random values of both schemas."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from mcp_bindgen.lowering import Lowered, Profile, Verdict, lower
from mcp_bindgen.lowering.profiles import refused_at
from mcp_bindgen.runtime.model.json_types import json_key
from tests.harness.json_instances import Instances

COMPLETE = {Verdict.EXACT, Verdict.CODED, Verdict.GUARDED}
MAY_RAISE = {Verdict.GUARDED, Verdict.NARROWED_GUARDED}


@dataclass(frozen=True)
class Fault:
    """A breach of the promises of a verdict, with the value that shows it."""

    kind: str
    tool: str
    profile: str
    value: Any
    shown: Any = None


@dataclass
class Tally:
    """Numbers of judged values, and the faults."""

    arguments: int = 0
    documents: int = 0
    faults: int = 0


def judged(tool: dict[str, Any], profile: Profile, rng: random.Random, count: int, tally: Tally) -> Iterator[Fault]:
    """Lower a tool and yield its faults on `count` random arguments and as many documents."""
    lowered, name = lower(tool, profile), str(tool["name"])
    if lowered.schema is None:
        if not lowered.reasons[-1].pointer:
            yield Fault("a refusal without pointer", name, profile.name, tool)
        return
    if (place := refused_at(lowered.schema, profile)) is not None:
        yield Fault(f"the profile refuses {place}", name, profile.name, lowered.schema)
    source = jsonschema_rs.validator_for(tool["inputSchema"], offline=True)
    target = jsonschema_rs.validator_for(lowered.schema, offline=True)
    arguments, documents = Instances(tool["inputSchema"], rng), Instances(lowered.schema, rng)
    for index in range(count):
        value = arguments.sample(index)
        if isinstance(value, dict) and source.is_valid(value):
            tally.arguments += 1
            if fault := _incomplete(lowered, target, value):
                yield Fault(fault, name, profile.name, value)
            elif index % 5 == 0:
                yield from _unsound(lowered, source, target, documents.mutant(_encoded(lowered, value)), tally, profile)
        yield from _unsound(lowered, source, target, documents.sample(index), tally, profile)


def _encoded(lowered: Lowered, value: Any) -> Any:
    try:
        return lowered.encode(value)
    except ValueError:
        return {}


def _incomplete(lowered: Lowered, target: Any, value: Any) -> str:
    try:
        encoded = lowered.encode(value)
        if not target.is_valid(encoded):
            return "encoded outside of the lowered schema"
        decoded = lowered.decode(encoded)
    except ValueError as error:
        return f"lost: {error}" if lowered.verdict in COMPLETE else ""
    return "" if json_key(decoded) == json_key(value) else f"decoded as {decoded!r}"


def _unsound(
    lowered: Lowered, source: Any, target: Any, document: Any, tally: Tally, profile: Profile
) -> Iterator[Fault]:
    if not isinstance(document, dict) or not target.is_valid(document):
        return
    tally.documents += 1
    try:
        decoded = lowered.decode(document)
    except ValueError as error:
        if lowered.verdict not in MAY_RAISE:
            yield Fault(f"refused: {error}", lowered.tool, profile.name, document)
        return
    if not source.is_valid(decoded):
        yield Fault("unsound", lowered.tool, profile.name, document, decoded)
