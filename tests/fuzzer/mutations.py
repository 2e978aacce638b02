"""Mutations of messages and of HTTP requests; the same random generator gives the same mutations."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from tests.harness.checked_connections import spelled

ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 1.0, 1.5, -0.0, 1e300, 2**64, 10**40),
    *("", "1", "2.0", "ping", "tools/call", "\u0000", "\ud7ff\ue000\U0010ffff", "\u2028\r\n", "../../etc"),
    *([], {}, [[]], {"method": "ping"}, {"": {"": []}}, [{"jsonrpc": "2.0", "id": "x", "method": "ping"}]),
]
NAMES = ["jsonrpc", "id", "method", "params", "result", "error", "_meta", "name", "uri", "x", "", "requestId"]
PIECES = [b"NaN", b"-Infinity", b"1e999", b"\\ud800", b"\\u0000", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf"]
PIECES += [b"null", b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b" ", b"\t", b"\r", b"0", b"-", b".", b"e", b"//"]
PIECES += [b'"id":1,', b'"id":null,', b'"method":"ping",', b'"jsonrpc":"1.0",', b'"result":{},', b"[" * 300, b"\x00"]
PIECES += [b"\n", b"9" * 5000, b'"id":2.0,', b'"requestId":3,', b"\x0b", b"\xe2\x80\xa8"]


# --- messages -------------------------------------------------------------------------------------------------


def conversation(dice: random.Random, messages: Sequence[Any], count: int) -> list[bytes]:
    """Return `count` recorded messages in random order: some unchanged, some mutated, some repeated."""
    found: list[bytes] = []
    while len(found) < count:
        data = mutated(dice, messages)
        found += [data] * (dice.choice([2, 3, 5]) if dice.random() < 0.03 else 1)
        if dice.random() < 0.05:  # repeats the message later
            found.append(dice.choice(found))
    return found[:count]


def mutated(dice: random.Random, messages: Sequence[Any]) -> bytes:
    """Return a message, mutated or unchanged."""
    one, other = dice.choice(messages), dice.choice(messages)
    match dice.randrange(16):
        case 0 | 1:
            return json.dumps(one).encode()
        case 2:
            return spelled(one, dice).encode("utf-8", "surrogatepass")
        case 3:
            left, right = json.dumps(one).encode(), json.dumps(other).encode()
            return left[: dice.randrange(len(left) + 1)] + right[dice.randrange(len(right)) :]
        case 4:
            batch = [dice.choice(messages) for _ in range(dice.randrange(5))]
            return spelled([*batch, changed(one, dice)][: dice.choice([0, 1, 5, 5])], dice).encode()
        case 5:
            return cut(spelled(changed(one, dice), dice).encode("utf-8", "surrogatepass"), dice)
        case 6 | 7:
            return cut(json.dumps(one, ensure_ascii=False, separators=dice.choice([None, (",", ":")])).encode(), dice)
        case 8 | 9:
            return json.dumps(_renumbered(one, dice), ensure_ascii=False).encode()
        case 10:
            return _twice(one, dice)
        case 11:
            return json.dumps(_buried(one, dice)).encode()
        case _:
            return spelled(changed(one, dice), dice).encode("utf-8", "surrogatepass")


def changed(document: Any, dice: random.Random) -> Any:
    """Return a document with one value of another type, or one member removed, added, renamed or copied."""
    document = _copy(document)
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
                holder[key] = _copy(other[place])
        else:
            holder[key] = odd(dice)
    return document


def cut(data: bytes, dice: random.Random) -> bytes:
    """Return bytes with some of them removed, doubled, flipped, moved or replaced."""
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


def odd(dice: random.Random) -> Any:
    """Return an unexpected JSON value."""
    if dice.random() < 0.2:
        alphabet = [dice.randrange(0x20, 0xD800) if dice.random() < 0.5 else dice.randrange(0x7F) for _ in range(5)]
        return "".join(map(chr, alphabet))
    return _copy(dice.choice(ODD))


def places(document: Any) -> list[tuple[Any, Any]]:
    """Return every position in a document, as a container and a key."""
    found: list[tuple[Any, Any]] = []
    pending = [document]
    while pending:
        node = pending.pop()
        for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            found.append((node, key))
            pending.append(node[key])
    return found


def _copy(document: Any) -> Any:
    return json.loads(json.dumps(document))


def _renumbered(document: Any, dice: random.Random) -> Any:
    """Return a message with another id, which may be in use."""
    document = dict(document)
    name = "id" if "id" in document or dice.random() < 0.5 else "requestId"
    new = dice.choice([dice.randrange(40), dice.randrange(40), str(dice.randrange(9)), float(dice.randrange(9))])
    if name == "id":
        document["id"] = new
    else:
        document["params"] = {**(document.get("params") or {}), name: new}
    return document


def _twice(document: Any, dice: random.Random) -> bytes:
    """Return an object with a duplicate member; all parsers use the last value, though RFC 8259 leaves that open."""
    text = json.dumps(document)
    name = dice.choice([*document, "id", "method"])
    again = document.get(name, 1) if dice.random() < 0.5 else odd(dice)
    member = f"{json.dumps(name)}:{json.dumps(again)}"
    return (f"{text[:-1]},{member}}}" if dice.random() < 0.5 else f"{{{member},{text[1:]}").encode()


def _buried(document: Any, dice: random.Random) -> Any:
    """Return a message with a deeply nested or a large value."""
    depth, size = dice.choice([10, 100, 190, 210, 500]), dice.choice([10, 1000, 50_000])
    value: Any = "x" * size if dice.random() < 0.3 else 10 ** min(size, 4000) if dice.random() < 0.3 else []
    if isinstance(value, list):
        for _ in range(depth):
            value = [value] if dice.random() < 0.5 else {"a": value}
    document = _copy(document)
    holder, key = dice.choice(places(document))
    holder[key] = value
    return document


# --- HTTP -----------------------------------------------------------------------------------------------------

HEADER_VALUES = [b"", b" ", b"*/*", b"application/json", b"text/event-stream;q=0", b"2025-11-25", b"2026-07-28", b"1"]
HEADER_VALUES += [b"2024-01-01", b"0-1", b"0-999999", b"x" * 9000, b"\xff\xfe", b"=?base64?R3LDvMOfZQ==?=", b"close"]
HEADER_VALUES += [b"chunked", b"gzip", b"-1", b"0", b"99999999999", b"http://evil.example", b"null", b"100-continue"]
HEADER_NAMES = [b"accept", b"content-type", b"mcp-session-id", b"mcp-protocol-version", b"mcp-method", b"mcp-name"]
HEADER_NAMES += [b"host", b"origin", b"last-event-id", b"content-encoding", b"x-forwarded-host", b"mcp-param-x"]
METHODS = [b"GET", b"PUT", b"DELETE", b"OPTIONS", b"HEAD", b"PATCH", b"BREW"]

Headers = list[tuple[bytes, bytes]]


def headers(dice: random.Random, given: Headers) -> Headers:
    """Return headers, some of them removed, doubled, swapped, changed or added; headers that frame the body stay."""
    found = list(given)
    for _ in range(dice.choice([1, 1, 2])):
        place = dice.randrange(len(found))
        kind = dice.randrange(6)
        if kind == 0:
            del found[place]
        elif kind == 1:
            found.append(found[place])
        elif kind == 2:
            found[place] = (found[place][0], dice.choice(found)[1])
        elif kind == 3:
            value = cut(found[place][1], dice)
            found[place] = (found[place][0], value.translate(None, b"\r\n\x00"))
        elif kind == 4:
            found[place] = (found[place][0], dice.choice(HEADER_VALUES))
        else:
            found.append((dice.choice(HEADER_NAMES), dice.choice(HEADER_VALUES)))
        if not found:
            break
    return found


def framing(dice: random.Random, request: bytes) -> bytes:
    """Return an HTTP request with a damaged head or damaged framing, so that its end may be undefined."""
    head, _, body = request.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    match dice.randrange(6):
        case 0:
            lines.append(dice.choice([b"content-length: 5", b"transfer-encoding: chunked", b"content-length: -1"]))
        case 1:
            lines[0] = cut(lines[0], dice)
        case 2:
            lines.insert(1, dice.choice([b": x", b" folded", b"a b: c", b"\x00: y", b"x" * 70_000, b"x"]))
        case 3:
            dice.shuffle(lines)
        case 4:
            return cut(request, dice)
        case _:
            body = b"%x\r\n%b\r\n" % (dice.choice([len(body), 1, 2**70]), body)
            lines = [line for line in lines if not line.startswith(b"content-length")] + [b"transfer-encoding: chunked"]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
