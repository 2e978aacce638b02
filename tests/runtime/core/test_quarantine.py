"""What a client keeps of results that are not valid, and how it reports what it leaves out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_bindgen.runtime import ProtocolError
from mcp_bindgen.runtime.protocol.events import Answered
from mcp_bindgen.runtime.protocol.peer import Peer
from tests.support.checked_connections import STATEFUL, STATELESS, answer, bindings, feed, only, ready

REVISIONS = [*STATEFUL, STATELESS]
GOOD = {"name": "good", "inputSchema": {"type": "object"}}
BAD_SCHEMA = {"name": "b", "inputSchema": {"type": "object", "properties": {"x/y\n": 1}}}
TEXT = {"type": "text", "text": "hi"}

every_revision = pytest.mark.parametrize("revision", REVISIONS)


def client_peer(revision: str) -> Peer:
    """The peer of a client, ready to ask."""
    return ready(revision, "client", bindings(revision).Client)


def heard(peer: Peer, name: str, result: Any) -> Answered:
    """The event when a request is answered."""
    method = peer.dispatcher.revision.request(name)
    pending, _ = peer.request(method, None if method.params is None else method.params.model_construct())
    return only(Answered, feed(peer, answer(pending.id, result)))


def result(revision: str, **members: Any) -> dict[str, Any]:
    """A result in wire form."""
    stateless = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if revision == STATELESS else {}
    return {**stateless, **members}


@every_revision
def test_one_bad_entry_costs_itself_alone(revision: str) -> None:
    peer = client_peer(revision)
    tools = [BAD_SCHEMA, GOOD, {"inputSchema": {"type": "object"}}, {**GOOD, "description": 3}, 7, GOOD]
    event = heard(peer, "tools/list", result(revision, tools=tools, nextCursor="2"))
    assert event.error is None
    found = {(one.method, one.pointer) for one in peer.invalid_items}
    expected = {"/tools/0/inputSchema/properties/x~1y\\n", "/tools/2/name", "/tools/3/description", "/tools/4"}
    if revision == STATELESS:
        expected.discard("/tools/0/inputSchema/properties/x~1y\\n")  # any schema may stand there
    assert found == {("tools/list", pointer) for pointer in expected}
    assert (len(event.result.tools), event.result.next_cursor) == (6 - len(expected), "2")
    known = dict(peer.invalid_items)
    heard(peer, "tools/list", result(revision, tools=tools))
    assert peer.invalid_items == known, "each is reported once"


@every_revision
@pytest.mark.parametrize(
    ("method", "member", "good", "bad"),
    [
        ("prompts/list", "prompts", {"name": "p"}, {"title": "no name"}),
        ("resources/list", "resources", {"uri": "a:b", "name": "r"}, {"uri": 3, "name": "r"}),
        ("resources/templates/list", "resourceTemplates", {"uriTemplate": "a:{b}", "name": "r"}, {"name": "r"}),
        ("resources/read", "contents", {"uri": "a:b", "text": "t"}, {"text": "t"}),
        ("tools/call", "content", TEXT, {"type": "text"}),
        ("prompts/get", "messages", {"role": "user", "content": TEXT}, {"role": "nobody", "content": TEXT}),
    ],
)
def test_every_list_of_models_can_be_kept(revision: str, method: str, member: str, good: Any, bad: Any) -> None:
    peer = client_peer(revision)
    event = heard(peer, method, result(revision, **{member: [good, bad]}))
    assert event.error is None
    assert json.loads(event.result.model_dump_json())[member] == [good]
    (one,) = peer.invalid_items
    assert one.method == method
    assert one.pointer.startswith(f"/{member}/1")
    assert one.problem
    assert "\n" not in str(one)


@every_revision
def test_structured_content_alone_is_a_result(revision: str) -> None:
    peer = client_peer(revision)
    event = heard(peer, "tools/call", result(revision, structuredContent={"a": 1}))
    assert event.error is None
    assert (event.result.content, event.result.model_dump()["structuredContent"]) == ([], {"a": 1})
    assert [one.pointer for one in peer.invalid_items] == ["/content"]


@every_revision
def test_what_is_no_list_at_all_is_an_error(revision: str) -> None:
    peer = client_peer(revision)
    wires: list[dict[str, Any]] = [{}, {"tools": {}}, {"tools": [{}], "nextCursor": 3}]
    for wire in wires:
        assert isinstance(heard(peer, "tools/list", result(revision, **wire)).error, ProtocolError)
    assert isinstance(heard(peer, "tools/call", result(revision)).error, ProtocolError)
    assert not peer.invalid_items, "a result that is refused as a whole is not reported in parts"


def test_a_negative_lifetime_means_none() -> None:
    peer = client_peer(STATELESS)
    for value in (-1, -5.0):
        event = heard(peer, "tools/list", result(STATELESS, tools=[GOOD]) | {"ttlMs": value})
        assert event.error is None
        assert (event.result.ttl_ms, len(event.result.tools)) == (0, 1)
    assert not peer.invalid_items
    assert heard(peer, "tools/list", result(STATELESS, tools=[]) | {"ttlMs": "-1"}).error is not None


def test_only_clients_mend() -> None:
    peer = ready("2025-11-25", "server", bindings("2025-11-25").Server)
    assert heard(peer, "roots/list", {"roots": [{"uri": "file:///a"}, {}]}).error is not None
    assert heard(peer, "roots/list", {"roots": [{"uri": "file:///a"}]}).error is None


def test_the_records_are_bounded() -> None:
    peer = client_peer("2025-11-25")
    event = heard(peer, "tools/list", {"tools": [{"name": n} for n in range(1500)] + [GOOD]})
    assert [tool.name for tool in event.result.tools] == ["good"]
    assert len(peer.invalid_items) == 1000
