"""Seeded violations: `tap` finds each mistake planted in valid messages, in both eras and over both transports."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from jsonschema_rs import Draft202012Validator

from mcp_bindgen.ir import build
from mcp_bindgen.ir.examples import example
from mcp_bindgen.ir.model import Method, Object, Protocol, Ref
from mcp_bindgen.spec import Store
from mcp_bindgen.tap.trace import meta_keys
from tests.harness.commands import COMMAND, PATIENCE
from tests.harness.forks import PYTHON
from tests.harness.taps import JSON, Scripted, Sent, event, in_memory, traced

REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
WRONG = [{"wrong": [True]}]


class Seed(NamedTuple):
    """A request and its response, one of which breaks a rule.

    Attributes:
        kind: The message, the member, and the rule.
        sender: The side that breaks the rule.
        pointer: Beginning of the pointer that must be reported.
        request: The request.
        response: The response.
    """

    kind: str
    sender: str
    pointer: str
    request: dict[str, Any]
    response: dict[str, Any]


def seeds(revision: str) -> list[Seed]:
    """Return seeds for each required member of the client's requests and their results: absent, and of a wrong type."""
    source = Store().effective(revision)
    protocol = build(source)
    found = list[Seed]()
    for method in protocol.methods:
        is_message = method.kind == "request" and method.carrier == "message" and "client" in method.senders
        if is_message and method.name != "initialize" and isinstance(method.result, Ref):
            found += _seeds(protocol, method, source.definitions, len(found))
    return found


def _seeds(protocol: Protocol, method: Method, definitions: Any, first: int) -> Iterator[Seed]:
    head = {"jsonrpc": "2.0", "id": first}
    params = {} if method.params is None else {"params": example(protocol, method.params)}
    assert method.result is not None
    request, response = {**head, "method": method.name, **params}, {**head, "result": example(protocol, method.result)}
    sides = [("client", request, "params", method.definition)] if params else []
    sides += [("server", response, "result", method.result.name)] if isinstance(method.result, Ref) else []
    for sender, message, member, definition in sides:
        type_ = method.params if member == "params" else method.result
        while isinstance(type_, Ref):
            type_ = protocol.definitions[type_.name].type
        names = [field.wire for field in type_.fields if field.required] if isinstance(type_, Object) else []
        whole = {"$ref": f"#/$defs/{definition}", "$defs": definitions}
        oracle = Draft202012Validator(whole)
        for name in names:
            rest = {key: value for key, value in message[member].items() if key != name}
            for rule, body in (("absent", rest), ("type", {**rest, name: WRONG})):
                broken = {**message, member: body}
                if oracle.is_valid(broken if member == "params" else body):
                    continue
                first += 1
                both = (broken, response) if sender == "client" else (request, broken)
                pair = ({**one, "id": first} for one in both)
                kind = f"{method.name} {member} {name} {rule}"
                yield Seed(kind, sender, f"/{member}", *pair)


@pytest.mark.full
def test_each_revision_has_enough_kinds_of_seeded_violations() -> None:
    kinds = {revision: {seed.kind for seed in seeds(revision)} for revision in REVISIONS}
    assert len(set().union(*kinds.values())) >= 40
    assert all(len(found) >= 20 for found in kinds.values())


def check(planted: list[Seed], found: list[dict[str, Any]]) -> None:
    """Check that each seed is reported at its place in its message, and that nothing else is reported."""
    by = {(one["sender"], one["id"]): one["violations"] for one in found if one["method"] != "initialize"}
    for seed in planted:
        assert by[seed.sender, seed.request["id"]], seed
        assert by[seed.sender, seed.request["id"]][0]["pointer"].startswith(seed.pointer), seed
        other = "server" if seed.sender == "client" else "client"
        assert by[other, seed.request["id"]] == [], seed


INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": "first",
    "method": "initialize",
    "params": {"capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
}


def opening(revision: str) -> list[dict[str, Any]]:
    """Return messages that tell `tap` the revision, in eras in which requests do not state it."""
    if revision >= "2026":
        return []
    first = {**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": revision}}
    result = {"protocolVersion": revision, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    return [first, {"jsonrpc": "2.0", "id": "first", "result": result}]


def stated(revision: str, seed: Seed) -> Seed:
    """State the revision in the metadata, unless the metadata is the seed."""
    params = seed.request.get("params", {})
    meta = params.get("_meta")
    if revision < "2026" or not isinstance(meta, dict):
        return seed
    return seed._replace(
        request={**seed.request, "params": {**params, "_meta": {**meta, meta_keys()["protocolVersion"]: revision}}}
    )


@pytest.mark.full
@pytest.mark.parametrize("revision", REVISIONS)
def test_seeded_violations_are_found_over_stdio(revision: str, tmp_path: Path) -> None:
    planted = [stated(revision, seed) for seed in seeds(revision)]
    planted.sort(key=lambda seed: "_meta" in seed.kind)  # the first request states the revision
    messages = [*opening(revision)[:1], *(seed.request for seed in planted)]
    answers = [*opening(revision)[1:], *(seed.response for seed in planted)]
    (tmp_path / "answers").write_text("".join(f"{json.dumps(one)}\n" for one in answers), "utf-8")
    server = (
        "import sys\nfor answer in open(sys.argv[1]):\n    sys.stdin.readline()\n    print(answer, end='', flush=True)"
    )
    out = tmp_path / "trace.jsonl"
    done = subprocess.run(
        [COMMAND, "tap", "--out", out, "--", PYTHON, "-c", server, tmp_path / "answers"],
        input="".join(f"{json.dumps(one)}\n" for one in messages).encode(),
        capture_output=True,
        timeout=PATIENCE,
    )
    assert done.stdout == (tmp_path / "answers").read_bytes()
    check(planted, traced(out))


@pytest.mark.full
@pytest.mark.parametrize("revision", REVISIONS)
def test_seeded_violations_are_found_over_http(revision: str) -> None:
    """Every second response is sent as an event."""
    planted = [stated(revision, seed) for seed in seeds(revision)]
    answers = {seed.request["id"]: seed.response for seed in planted}

    def answer(sent: Sent) -> tuple[int, Any, list[bytes]]:
        response = answers[json.loads(sent.body)["id"]]
        if response["id"] % 2:
            return 200, {"content-type": "text/event-stream"}, [event(response)]
        return 200, JSON, [json.dumps(response).encode()]

    async def run() -> list[Any]:
        async with in_memory(Scripted(answer)) as (client, seen):
            for seed in planted:
                await client.post("/mcp", json=seed.request, headers={"mcp-protocol-version": revision})
        return [message.document() for message in seen]

    check(planted, json.loads(json.dumps(anyio.run(run))))
