"""A peer parses most messages on a fast path and the rest on a slow path; both give the same events."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mcp_bindgen.runtime.protocol.connection import Connection, State
from mcp_bindgen.runtime.protocol.events import Requested
from mcp_bindgen.runtime.protocol.methods import Role
from tests.harness.checked_connections import (
    STATELESS,
    copied,
    dispatchers_of,
    essence,
    feed,
    oracle,
    ready,
    request,
    slow,
    takes,
)
from tests.harness.effort import cases, examples

from .mutations import mutated
from .traffic import traffic

MUTATIONS = examples(1_000, 8_000)
BUSY = "busy"
"""Id of a request that is in flight throughout the test."""


@pytest.mark.full
@pytest.mark.parametrize("role", ["server", "client"])
@pytest.mark.parametrize("revision", cases(["2025-03-26", "2025-11-25", STATELESS], quick=["2025-03-26", STATELESS]))
def test_the_fast_and_the_slow_path_return_the_same_events(role: Role, revision: str) -> None:
    dice = random.Random(f"{role} {revision}")
    recorded = traffic(revision)
    messages = [*(recorded.client if role == "server" else recorded.server), request(BUSY, "ping")]
    is_stateless = role == "server" and revision == STATELESS
    original = Connection(role, dispatchers_of(takes(revision, role))) if is_stateless else ready(revision, role)
    feed(original, request(BUSY, "ping"))
    connection, quick = copied(original), 0
    for turn in range(MUTATIONS):
        if turn % 50 == 0:
            connection = copied(original)
            for name in ("tools/call", "tools/list", "resources/read") if role == "client" else ():
                connection.request(oracle(revision).methods[name], None)
        data = mutated(dice, messages)
        quick += copied(connection)._receive_quickly(data) is not None  # noqa: SLF001 - the paths differ in nothing else
        expected = essence(feed(slow(connection), data))
        events = feed(connection, data)
        assert essence(events) == expected, data
        for event in events:
            if isinstance(event, Requested):
                connection.respond(event.id, {})
        assert connection.state is State.READY
    assert quick > MUTATIONS // 40  # about a twentieth: the recorded traffic differs in ids and times


@pytest.mark.full
@pytest.mark.parametrize("role", ["client", "server"])
def test_only_a_handshake_begins_a_connection(role: Any) -> None:
    dice = random.Random(role)
    fresh = Connection(role, ready("2025-11-25", role).dispatchers)
    recorded = traffic("2025-11-25")
    for _ in range(MUTATIONS):
        data = mutated(dice, recorded.client + recorded.server)
        connection = copied(fresh)
        assert essence(feed(copied(fresh), data)) == essence(feed(slow(fresh), data)), data
        feed(connection, data)
        assert connection.state in (State.NEW, State.ASKED), data
