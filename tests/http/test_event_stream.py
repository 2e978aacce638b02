"""Server-sent events, encoded and decoded: by the specification, split anywhere, and within limits (1 s)."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bindgen.http.event_stream import KEEP_ALIVE, EventDecoder, ServerSentEvent, encode
from mcp_bindgen.runtime.protocol.transport import Oversized
from tests.harness.effort import each


def feed(data: bytes, sizes: list[int], limit: int = 10_000) -> tuple[EventDecoder, list[Any]]:
    """Return the data of the messages of a stream that arrives in chunks of these sizes."""
    stream, found = EventDecoder(limit), list[Any]()
    while data:
        size = sizes.pop(0) if sizes else len(data)
        found += [event.data for event in stream.feed(data[:size]) if event.type == "message"]
        data = data[size:]
    return stream, found


@each(
    ("data", "expected", "last_id", "retry"),
    [
        (b"data: a\n\n", [b"a"], None, 1.0),
        (b"\xef\xbb\xbfdata: a\r\n\r\ndata:b\r\rdata:  c\n\n", [b"a", b"b", b" c"], None, 1.0),
        (b"data: a\r\n\ndata: b\r\r\n\ndata: c\n\r\n", [b"a", b"b", b"c"], None, 1.0),
        (b"data: a\r\ndata: b\r\n\r\nid: 1\r\n\r\n", [b"a\nb"], "1", 1.0),
        (b"data: a\ndata: b\ndata\ndata:\n\n", [b"a\nb\n\n"], None, 1.0),
        (b"event: message\ndata: a\n\nevent: x\ndata: b\n\ndata: c\n\n", [b"a", b"c"], None, 1.0),
        (b"data\n\ndata:\n\ndata: \n\n: data\n\n\n\n", [b"", b"", b""], None, 1.0),
        (b"id: 1\n\nid: 2\ndata: a\n\nid: 3\n", [b"a"], "2", 1.0),
        (b"id: 1\ndata: a\n\ndata: b\n\n", [b"a", b"b"], "1", 1.0),
        (b"id: 1\n\nid\n\n", [], None, 1.0),
        (b"id: 1\n\nid: a\0b\n\n", [], "1", 1.0),
        (b"id: 1\n\nid: \x07\n\n", [], None, 1.0),
        (b"retry: 500\n", [], None, 0.5),
        (b"retry: 0\nretry: -1\nretry: 1.5\nretry: x\nretry:\nretry: 1_0\nretry: 99999999999\n", [], None, 0.0),
        (b"data: a\nfoo: b\nDATA: c\n data: d\n\n", [b"a"], None, 1.0),
        ("data: é\u2028\u0085\x0b\x0c\x1c\n\n".encode(), ["é\u2028\u0085\x0b\x0c\x1c".encode()], None, 1.0),
        (b"data: \xff\n\n", [b"\xff"], None, 1.0),
        (b"data: half", [], None, 1.0),
        (b"data: half\n", [], None, 1.0),
    ],
)
def test_streams_are_decoded_as_specified(
    data: bytes, expected: list[bytes], last_id: str | None, retry: float
) -> None:
    for size in (1, 2, 3, 7, 1000):
        stream, found = feed(data, [size] * len(data))
        assert (found, stream.last_id, stream.retry, stream.received) == (expected, last_id, retry, len(data))


MESSAGE = st.text(alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\n"), min_size=1)


@given(st.lists(MESSAGE), st.lists(st.integers(1, 9)), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_messages_may_be_split_into_chunks_of_any_size(texts: list[str], sizes: list[int], end: bytes) -> None:
    data = b"".join(b"data: " + text.encode() + end + end for text in texts)
    assert feed(data, list(sizes))[1] == [text.encode() for text in texts]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(blacklist_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.full
@given(st.lists(JSON), st.sampled_from([None, 1, "\r", "\r\n\t"]), st.booleans(), st.lists(st.integers(1, 9)))
def test_encoded_json_values_are_decoded_unchanged(
    values: list[Any], indent: Any, ascii: bool, sizes: list[int]
) -> None:
    texts = [json.dumps(value, indent=indent, ensure_ascii=ascii).encode("utf-8", "ignore") for value in values]
    written = b"".join([encode(text, id=f"{number}") + KEEP_ALIVE for number, text in enumerate(texts)])
    stream, found = feed(written, list(sizes))
    assert [json.loads(data) for data in found] == [json.loads(text) for text in texts]
    assert found == [text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") for text in texts]
    assert stream.last_id == (f"{len(texts) - 1}" if texts else None)


@given(st.binary(min_size=1), st.lists(st.integers(1, 9)))
def test_any_bytes_are_decoded_with_normalized_line_ends(data: bytes, sizes: list[int]) -> None:
    assert feed(encode(data), sizes)[1] == [data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")]


@pytest.mark.parametrize(
    ("fields", "written"),
    [
        ({}, b"\n"),
        ({"retry": 0.005}, b"retry: 5\n\n"),
        ({"data": b"", "id": "1", "retry": 0.005}, b"id: 1\nretry: 5\ndata: \n\n"),
        ({"data": b"a\r\nb\rc\n", "event": "message"}, b"event: message\ndata: a\ndata: b\ndata: c\ndata: \n\n"),
        ({"data": b"/post?x=1", "event": "endpoint"}, b"event: endpoint\ndata: /post?x=1\n\n"),
    ],
)
def test_all_fields_of_an_event_are_encoded(fields: dict[str, Any], written: bytes) -> None:
    assert encode(**fields) == written


def test_events_have_a_type() -> None:
    data = b"event: endpoint\ndata: /post\n\nevent:\ndata: a\n\nevent: x\n\ndata: b\n\nevent: \xff\ndata: c\n\n"
    expected = [("endpoint", b"/post"), ("message", b"a"), ("message", b"b"), ("\ufffd", b"c")]
    assert EventDecoder(100).feed(data) == expected


@given(st.binary(), st.lists(st.integers(1, 9)))
def test_the_decoder_accepts_any_bytes(data: bytes, sizes: list[int]) -> None:
    stream, _ = feed(data, list(sizes), limit=10)
    stream.connect()
    assert stream.feed(b"data: ok\n\n") == [ServerSentEvent("message", b"ok")]


@pytest.mark.parametrize("size", [1, 7, 64, 5000])
def test_large_messages_are_skipped_in_little_memory(size: int) -> None:
    big = b'{"a": "' + b"x" * 3000 + b'"}'
    data = b"data: %s\n\nid: 1\ndata: ok\n\n%s\n: %s\n\n" % (big, b"data: x\n" * 600, b"c" * 3000)
    data += b"data: fine\n\nid: %s\ndata: %s\n\n" % (b"9" * 3000, b"y" * 1000)
    stream, found = feed(data, [size] * len(data), limit=1000)
    first, second, third, fourth, last = found
    assert (second, fourth, last) == (b"ok", b"fine", b"y" * 1000)
    assert isinstance(first, Oversized)
    assert big.startswith(first.head)
    assert len(first.head) > 200
    assert isinstance(third, Oversized)
    assert third.head.startswith(b"x\nx\nx")
    assert stream.last_id is None, "an id that no header can hold"


def test_an_event_of_many_short_lines_takes_as_much_memory_as_its_data() -> None:
    stream, lines = EventDecoder(2**20), 100_000
    tracemalloc.start()
    try:
        for _ in range(lines // 100):
            stream.feed(b"data:ab\n" * 100)
        assert tracemalloc.get_traced_memory()[1] < 4 * 2**20 // 3
    finally:
        tracemalloc.stop()
    assert stream.feed(b"\n") == [("message", b"ab" + b"\nab" * (lines - 1))]


def test_the_reconnection_pause_grows_and_follows_the_retry_field() -> None:
    stream = EventDecoder(10)
    assert [stream.retry_after(failures) for failures in (0, 1, 2, 5, 10_000)] == [1, 2, 4, 30, 30]
    stream.feed(b"retry: 60000\n")
    assert [stream.retry_after(failures) for failures in (0, 5)] == [60, 60]
    stream.feed(b"retry: 500\n")
    assert [stream.retry_after(failures) for failures in (0, 1)] == [0.5, 1]
