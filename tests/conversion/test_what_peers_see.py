"""Results that clients of other revisions receive: the conversion of the result that a native client receives."""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_bindgen.bridging.chain import NotConvertible, chain
from tests.harness.bridging import REVISIONS, Json, converted, definitions, payloads
from tests.harness.checked_connections import STATELESS, bindings, lone, played, request
from tests.harness.effort import cases, examples
from tests.harness.json_instances import Instances, odd_names, of_definitions

ASKED: dict[str, dict[str, Any]] = {
    "completion/complete": {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "b"}},
    "prompts/get": {"name": "p"},
    "prompts/list": {},
    "resources/list": {},
    "resources/read": {"uri": "file:///x"},
    "resources/templates/list": {},
    "tools/call": {"name": "t"},
    "tools/list": {},
}
"""Method -> params that are the same in all revisions."""

ERA = {"resultType", "ttlMs", "cacheScope", "_meta"}
"""Members of results that belong to the era of the wire."""


def make_server(revision: str, method: str, result: Json) -> Any:
    """Return a server of one revision; its handler returns the given result."""
    native = bindings(revision).Server

    async def handler(self: Any, params: Any, ctx: Any) -> Any:
        return copy.deepcopy(result)

    return type("Same", (native,), {native.dispatcher.routes[method].handler: handler})()


async def seen(server: Any, wire: str, method: str) -> Any:
    """Return the response that a client of a revision receives."""
    async with played(server, revisions=[wire]) as (raw, _):
        if wire == STATELESS:
            return await raw.ask(lone(1, method, **ASKED[method]))
        await raw.introduce(wire)
        return await raw.ask(request(1, method, ASKED[method]))


def expected(home: str, wire: str, method: str, result: Json) -> Any:
    """Return the expected result, or the error message if the conversion is refused."""
    steps = chain(home, wire)
    assert steps is not None
    try:
        return converted(steps.results(method), result)
    except NotConvertible as error:
        return error.message


def plain(value: Json) -> Json:
    return {name: item for name, item in value.items() if name not in ERA} if isinstance(value, dict) else value


@cache
def own_instances(revision: str) -> Instances:
    """Return values with members of this revision only; a handler must not use member names of later revisions."""
    return of_definitions(definitions(revision), names=odd_names("acme"))


@st.composite
def returned(draw: st.DrawFn, revision: str) -> tuple[str, Json]:
    """Return a method and a result of its usual type."""
    results = [one for one in payloads(revision) if one.method in ASKED and one.part == "results"]
    payload = draw(st.sampled_from(results))
    value = draw(own_instances(revision).strategy(payload.schemas[0]))
    return payload.method, {**value, **({"resultType": "complete"} if revision == STATELESS else {})}


@pytest.mark.parametrize("home", cases(REVISIONS, quick=["2025-06-18", "2026-07-28"]))
def test_a_bridged_client_gets_the_converted_result_of_a_native_client(home: str) -> None:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

    @settings(max_examples=examples(5, 40), suppress_health_check=slow)
    @given(returned(home))
    def holds(drawn: tuple[str, Json]) -> None:
        method, value = drawn

        async def compare() -> None:
            server = make_server(home, method, value)
            native = (await seen(server, home, method))["result"]
            assert plain(native) == plain(value)
            for wire in REVISIONS:
                if wire != home:
                    answer, wanted = await seen(server, wire, method), expected(home, wire, method, native)
                    if not isinstance(wanted, str):
                        assert plain(answer["result"]) == plain(wanted), (wire, json.dumps(answer))
                    elif method == "tools/call":
                        assert answer["result"] | {"isError": True} == answer["result"]
                        assert answer["result"]["content"][0]["text"] == wanted
                    else:
                        assert answer["error"]["message"] == wanted

        anyio.run(compare)

    holds()
