"""Messages out of server-sent events: by the book, in any pieces, and within limits (1 s)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bindgen.runtime.core.transport import Oversized
from mcp_bindgen.runtime.http.event_stream import EventStream


def feed(data: bytes, sizes: list[int], limit: int = 10_000) -> tuple[EventStream, list[Any]]:
    """What a stream says that comes in pieces of these sizes."""
    stream = EventStream(limit)
    found: list[Any] = []
    while data:
        size = sizes.pop(0) if sizes else len(data)
        found += stream.feed(data[:size])
        data = data[size:]
    return stream, found


@pytest.mark.parametrize(
    ("data", "expected", "last_id", "retry"),
    [
        (b"data: a\n\n", [b"a"], None, 1.0),
        (b"\xef\xbb\xbfdata: a\r\n\r\ndata:b\r\rdata:  c\n\n", [b"a", b"b", b" c"], None, 1.0),
        (b"data: a\r\ndata: b\r\n\r\nid: 1\r\n\r\n", [b"a\nb"], "1", 1.0),
        (b"data: a\ndata: b\ndata\ndata:\n\n", [b"a\nb\n\n"], None, 1.0),
        (b"event: message\ndata: a\n\nevent: x\ndata: b\n\ndata: c\n\n", [b"a", b"c"], None, 1.0),
        (b"data\n\ndata:\n\ndata: \n\n: data\n\n\n\n", [], None, 1.0),
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
def test_streams_are_read_by_the_book(data: bytes, expected: list[bytes], last_id: str | None, retry: float) -> None:
    for size in (1, 2, 3, 7, 1000):
        if size < 3 and data.startswith(b"\xef"):
            continue
        stream, found = feed(data, [size] * len(data))
        assert (found, stream.last_id, stream.retry) == (expected, last_id, retry)
        assert stream.heard == len(data)


MESSAGE = st.text(alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\n"), min_size=1)


@given(st.lists(MESSAGE), st.lists(st.integers(1, 9)), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_pieces_do_not_matter(texts: list[str], sizes: list[int], end: bytes) -> None:
    data = b"".join(b"data: " + text.encode() + end + end for text in texts)
    assert feed(data, list(sizes))[1] == [text.encode() for text in texts]


@given(st.binary(), st.lists(st.integers(1, 9)))
def test_no_bytes_make_it_fail(data: bytes, sizes: list[int]) -> None:
    stream, _ = feed(data, list(sizes), limit=10)
    stream.begin()
    assert stream.feed(b"data: ok\n\n") == [b"ok"]


@pytest.mark.parametrize("size", [1, 7, 64, 5000])
def test_large_messages_are_skipped_in_little_memory(size: int) -> None:
    big = b'{"a": "' + b"x" * 3000 + b'"}'
    data = (
        b"data: "
        + big
        + b"\n\nid: 1\ndata: ok\n\n"
        + b"data: x\n" * 600
        + b"\n: "
        + b"c" * 3000
        + b"\n\ndata: fine\n\n"
        + b"id: "
        + b"9" * 3000
        + b"\ndata: "
        + b"y" * 1000
        + b"\n\n"
    )
    stream, found = feed(data, [size] * len(data), limit=1000)
    first, second, third, fourth, last = found
    assert (second, fourth, last) == (b"ok", b"fine", b"y" * 1000)
    assert isinstance(first, Oversized)
    assert big.startswith(first.head)
    assert len(first.head) > 200
    assert isinstance(third, Oversized)
    assert third.head.startswith(b"x\nx\nx")
    assert stream.last_id is None, "an id that no header can hold"


def test_pauses() -> None:
    stream = EventStream(10)
    assert [stream.pause(failures) for failures in (0, 1, 2, 5, 10_000)] == [1, 2, 4, 30, 30]
    stream.feed(b"retry: 60000\n")
    assert [stream.pause(failures) for failures in (0, 5)] == [60, 60]
    stream.feed(b"retry: 500\n")
    assert [stream.pause(failures) for failures in (0, 1)] == [0.5, 1]
