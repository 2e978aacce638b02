"""Whatever comes in, a peer does not fail, and what can be answered is answered once."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from mcp_bindgen.runtime.core.errors import ProtocolError
from mcp_bindgen.runtime.core.events import Rejected, Requested
from mcp_bindgen.runtime.core.peer import Peer
from mcp_bindgen.runtime.core.transitions import State
from tests.support.checked_connections import (
    INITIALIZED,
    answer,
    copied,
    essence,
    initialize,
    notification,
    oracle,
    ready,
    refusal,
    request,
    slow,
    spelled,
    strictly,
)
from tests.support.effort import examples

MUTATIONS = examples(10_000, 120_000)
PARTS = 8
DEEPEST = 150
BUSY = "busy"
"""The id of a request that is in flight all the time."""

TEXT = {"type": "text", "text": 'Größe \U0001f600 \\ / " \n'}
MESSAGES: list[Any] = [
    request(1, "ping"),
    request(BUSY, "ping"),
    request("é", "ping", {"_meta": {"progressToken": "t"}}),
    request(2, "tools/list"),
    request(3, "tools/list", {"cursor": "abc", "_meta": {"x": None}}),
    request(4, "tools/call", {"name": "echo", "arguments": {"text": "hello", "n": [1, 2.5, -3e10, True, None]}}),
    request(5, "tools/call", {"name": "m", "arguments": {"method": "ping", "id": 7, "jsonrpc": "1.0"}}),
    request(6, "resources/read", {"uri": "file:///x/y.txt"}),
    request(7, "resources/subscribe", {"uri": "file:///x"}),
    request(8, "prompts/get", {"name": "p", "arguments": {"a": "b"}}),
    request(
        9, "completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "v"}}
    ),
    request(10, "logging/setLevel", {"level": "warning"}),
    request(2**53 + 1, "tools/explode", {}),
    initialize("2025-11-25", id_=11),
    INITIALIZED,
    notification("notifications/cancelled", {"requestId": BUSY, "reason": "enough"}),
    notification("notifications/cancelled", {"requestId": 4}),
    notification("notifications/progress", {"progressToken": 1, "progress": 0.5, "total": 1, "message": "half"}),
    notification("notifications/roots/list_changed"),
    notification("notifications/unknown", {"a": 1}),
    answer(1, {}),
    answer(2, {"roots": [{"uri": "file:///x", "name": "x"}]}),
    answer(3, {"model": "m", "role": "assistant", "content": TEXT}),
    answer("1", {"_meta": {"k": [TEXT]}}),
    refusal(2, -32601, "no"),
    {"jsonrpc": "2.0", "error": {"code": -32700, "message": "what?"}},
    [request("a", "ping"), notification("notifications/roots/list_changed"), request("b", "tools/list"), answer(1, {})],
    [request("c", "tools/call", {"name": "x"}), request("c", "ping"), request("d", "nope"), 5, []],
    [],
]
ODD: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    1.0,
    1.5,
    -0.0,
    1e300,
    2**64,
    10**40,
    "",
    "1",
    "2.0",
    "ping",
    "tools/call",
    BUSY,
    "\u0000",
    "\ud7ff\ue000\U0010ffff",
    [],
    {},
    [[]],
    {"method": "ping"},
    {"": {"": []}},
    [{"jsonrpc": "2.0", "id": "x", "method": "ping"}],
]
NAMES = ["jsonrpc", "id", "method", "params", "result", "error", "_meta", "name", "uri", "x", "", "requestId"]
PIECES = [b"NaN", b"-Infinity", b"1e999", b"\\ud800", b"\\u0000", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf"]
PIECES += [b"null", b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b" ", b"\t", b"\r", b"0", b"-", b".", b"e", b"//"]
PIECES += [b'"id":1,', b'"id":null,', b'"method":"ping",', b'"jsonrpc":"1.0",', b'"result":{},', b"[" * 300, b"\x00"]


# --- damage ---------------------------------------------------------------------------------------------------


def places(document: Any) -> list[tuple[Any, Any]]:
    """Every place in a document, as a container and a key."""
    found: list[tuple[Any, Any]] = []
    pending = [document]
    while pending:
        node = pending.pop()
        for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            found.append((node, key))
            pending.append(node[key])
    return found


def odd(dice: random.Random) -> Any:
    """A value that nobody expects."""
    if dice.random() < 0.2:
        alphabet = [dice.randrange(0x20, 0xD800) if dice.random() < 0.5 else dice.randrange(0x7F) for _ in range(5)]
        return "".join(map(chr, alphabet))
    return json.loads(json.dumps(dice.choice(ODD)))


def changed(document: Any, dice: random.Random) -> Any:
    """A document with a value of another type, or a member gone, new or renamed."""
    document = json.loads(json.dumps(document))
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        known = places(document)
        if not known:
            return odd(dice)
        holder, key = dice.choice(known)
        kind = dice.randrange(6)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[dice.choice(NAMES)] = holder.pop(key)
        elif kind == 2 and isinstance(holder, dict):
            holder[dice.choice(NAMES)] = odd(dice)
        elif kind == 3:
            other, place = dice.choice(known)
            if place in other if isinstance(other, dict) else place < len(other):
                holder[key] = json.loads(json.dumps(other[place]))
        else:
            holder[key] = odd(dice)
    return document


def cut(data: bytes, dice: random.Random) -> bytes:
    """Bytes of which some are missing, doubled, flipped, moved or replaced."""
    for _ in range(dice.choice([1, 1, 2, 4])):
        start = dice.randrange(len(data) + 1)
        end = min(len(data), start + dice.choice([1, 1, 2, 5, 20, 1000]))
        kind = dice.randrange(6)
        if kind == 0:
            data = data[:start] + data[end:]
        elif kind == 1:
            data = data[:end] + data[start:end] + data[end:]
        elif kind == 2 and start < end:
            data = data[:start] + bytes([data[start] ^ 1 << dice.randrange(8)]) + data[start + 1 :]
        elif kind == 3:
            data = data[end:] + data[:end]
        elif kind == 4:
            data = data[:start]
        else:
            data = data[:start] + dice.choice(PIECES) + data[start:]
    return data


def mutated(dice: random.Random) -> bytes:
    """A message to which something happened."""
    one, other = dice.choice(MESSAGES), dice.choice(MESSAGES)
    kind = dice.randrange(10)
    if kind == 0:
        return spelled(one, dice).encode()
    if kind == 1:
        left, right = json.dumps(one).encode(), json.dumps(other).encode()
        return left[: dice.randrange(len(left) + 1)] + right[dice.randrange(len(right)) :]
    if kind == 2:
        return spelled([one, other, changed(one, dice)], dice).encode()
    if kind == 3:
        return cut(spelled(changed(one, dice), dice).encode(), dice)
    if kind in (4, 5, 6):
        return cut(json.dumps(one, ensure_ascii=False, separators=dice.choice([None, (",", ":")])).encode(), dice)
    return spelled(changed(one, dice), dice).encode("utf-8", "surrogatepass")


# --- what is to be expected -----------------------------------------------------------------------------------


def read(data: bytes) -> Any:
    """The document, read by somebody else; raises `ValueError` when there is none, or one that is too deep for us."""
    document = strictly(data)
    json.dumps(document, ensure_ascii=False).encode()  # half of a surrogate pair is no character
    if data.count(b"[") + data.count(b"{") > DEEPEST:
        raise ValueError("too deep")
    return document


def asks(message: Any) -> Any:
    """The id under which a message wants an answer; `None` when it wants none."""
    if not isinstance(message, dict) or ("method" not in message and ("result" in message or "error" in message)):
        return None
    id_ = message.get("id")
    if isinstance(id_, float) and id_.is_integer():
        return int(id_)
    return id_ if isinstance(id_, int | str) and not isinstance(id_, bool) else None


def is_told(message: Any) -> bool:
    """Whether a message is a notification, however wrong it may be."""
    return isinstance(message, dict) and isinstance(message.get("method"), str) and "id" not in message


def parts(data: bytes) -> list[Any]:
    """The answers in what is sent."""
    sent = strictly(data)
    return sent if isinstance(sent, list) else [sent]


def exchange(peer: Peer, data: bytes, dice: random.Random) -> list[Any]:
    """Feeds a message and answers what it asks, in any order; gives all that was sent."""
    sent: list[Any] = []
    events = peer.receive(data)
    for event in events:
        if isinstance(event, Rejected) and event.reply:
            sent += parts(event.reply)
    asked = [event for event in events if isinstance(event, Requested)]
    dice.shuffle(asked)
    for event in asked:
        ways: list[Callable[[], bytes]] = [
            lambda id_=event.id: peer.respond(id_, {}),  # type: ignore[misc]
            lambda id_=event.id: peer.fail(id_, ProtocolError(1, "no")),  # type: ignore[misc]
        ]
        written = dice.choice(ways)()
        if written:
            sent += parts(written)
    return sent


@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_comes_is_answered_once_or_not_at_all(part: int) -> None:
    dice = random.Random(part)
    revision = ["2025-11-25", "2025-03-26"][part % 2]
    schema = oracle(revision)
    peer = ready(revision)
    peer.receive(json.dumps(request(BUSY, "ping")).encode())
    lively = 0
    for _ in range(MUTATIONS // PARTS):
        data = mutated(dice)
        assert essence(copied(peer).receive(data)) == essence(slow(peer).receive(data)), data
        sent = exchange(peer, data, dice)
        assert (peer.state, list(peer.handling)) == (State.READY, [BUSY]), data
        for message in sent:
            assert schema.message(message) == [], data
        try:
            document = read(data)
        except ValueError:
            assert len(sent) <= 1 or isinstance(json.loads(data), list), data
            continue
        messages = (
            document if isinstance(document, list) and document and peer.dispatcher.revision.batches else [document]
        )
        wanted = Counter(map(json.dumps, filter(lambda id_: id_ is not None, map(asks, messages))))
        given = Counter(json.dumps(message["id"]) for message in sent if "id" in message)
        assert given == wanted, data
        nameless = [message for message in messages if asks(message) is None and not is_told(message)]
        assert sum("id" not in message for message in sent) <= len(nameless), data
        lively += bool(wanted)
    assert lively > MUTATIONS // PARTS // 10


@pytest.mark.parametrize("part", range(PARTS))
def test_a_client_takes_whatever_comes(part: int) -> None:
    dice = random.Random(1000 + part)
    revision = ["2025-11-25", "2025-03-26"][part % 2]
    methods = oracle(revision).methods
    peer = ready(revision, "client")
    for turn in range(MUTATIONS // PARTS // 4):
        if turn % 50 == 0:
            peer = ready(revision, "client")
            for name in ("ping", "roots/list", "sampling/createMessage"):
                peer.request(methods[name], None)
        data = mutated(dice)
        expected = essence(slow(peer).receive(data))
        assert essence(peer.receive(data)) == expected, data
        peer.handling.clear()
        assert peer.state is State.READY


@pytest.mark.parametrize("role", ["client", "server"])
def test_a_peer_takes_whatever_comes_first(role: Any) -> None:
    dice = random.Random(role)
    peer = ready("2025-11-25", role)
    fresh = Peer(role, peer.dispatchers)
    for _ in range(MUTATIONS // PARTS // 4):
        data = mutated(dice)
        twin = copied(fresh)
        sent = exchange(twin, data, dice)
        assert twin.state is State.NEW, data
        for message in sent:
            assert oracle("2025-11-25").message(message) == [], data
