"""Fuzz tests of every transport, era and role: each request gets exactly one response, and no other message is sent."""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any

import pytest

from mcp_bindgen.runtime.protocol.connection import Connection
from tests.harness.checked_connections import notification, request
from tests.harness.commands import ROOT, execute
from tests.harness.effort import cases, each, examples

from .checker import Checker
from .failure import Violation
from .run import run
from .traffic import traffic
from .trial import TRANSPORTS, Trial, trials

QUICK = {("2025-11-25", "memory"), ("2025-03-26", "stdio"), ("2026-07-28", "http"), ("2024-11-05", "sse")}
REVISION = "2025-11-25"


def every(count: int) -> list[Any]:
    return cases(
        trials(count),
        quick=[trial for trial in trials(count) if (trial.revision, trial.transport) in QUICK],
    )


@pytest.mark.full
@pytest.mark.parametrize("trial", every(examples(1_000, 8_000)), ids=str)
def test_each_request_gets_one_response_and_no_other_message_is_sent(trial: Trial) -> None:
    run(trial)


@pytest.mark.slow
@pytest.mark.parametrize("trial", trials(1_000_000, seed=1_000_000), ids=str)
def test_a_million_messages_get_only_the_required_responses(trial: Trial) -> None:
    run(trial)


# --- the fuzzer itself ----------------------------------------------------------------------------------------


def judge(*messages: Any) -> Checker:
    """Return a checker of the responses that some messages require."""
    found = Checker([REVISION], batches=False)
    for message in messages:
        found.sent(message if isinstance(message, bytes) else json.dumps(message).encode())
    return found


def result(id_: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id_, "result": {}}).encode()


def test_the_checker_counts_the_outstanding_responses() -> None:
    found = judge(request(1, "ping"), request("1", "ping"), request(2.0, "ping"), request(1, "x"), b'{"id":3,"id":4}')
    assert found.outstanding == {1: 2, "1": 1, 2: 1, 4: 1}
    for id_ in (1, "1", 2, 1, 4):
        found.received(result(id_))
    assert not found.outstanding


@each("data", [b"{", b"[]", b"null", b'{"id":"\\ud800"}', b'{"id":NaN}', b'{"id":true}', b"\xff"])
def test_a_message_without_an_id_gets_at_most_one_error(data: bytes) -> None:
    found = judge(data)
    assert not found.outstanding
    error = b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}'
    found.received(error)
    with pytest.raises(Violation, match="without an id"):
        found.received(error)


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        (result(2), "answers nothing"),
        (b"x", "no JSON"),
        (b'{"jsonrpc":"2.0","id":1}', "JSONRPCMessage"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"tools":1}}', "tools"),
        (json.dumps(notification("notifications/progress", {"progressToken": 1, "progress": 1})).encode(), "waits"),
    ],
)
def test_the_checker_reports_invalid_messages(said: bytes, wrong: str) -> None:
    found = judge(request(1, "tools/list"))
    with pytest.raises(Violation, match=wrong):
        found.received(said)


def test_a_cancelled_request_gets_at_most_one_response() -> None:
    found = judge(request(1, "ping"), notification("notifications/cancelled", {"requestId": 1}))
    assert not found.outstanding
    found.received(result(1))
    with pytest.raises(Violation, match="answers nothing"):
        found.received(result(1))


@pytest.mark.full
def test_a_failure_is_reported_with_a_command_that_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer with a wrong id in one response is found, and the failure is reduced to few messages."""
    traffic(REVISION)  # recorded before the peer makes mistakes
    respond = Connection.respond

    def mistaken(connection: Connection, id_: Any, answer: Any) -> bytes:
        data = respond(connection, id_, answer)
        return data.replace(b'"id":', b'"id":77,"x":', 1) if b'"prompts":[' in data else data

    monkeypatch.setattr(Connection, "respond", mistaken)
    with pytest.raises(Violation, match="answers nothing") as caught:
        run(Trial("server", "memory", REVISION))
    command = str(caught.value).partition("Try again: ")[2].partition("\n")[0]
    *_, only = shlex.split(command)
    assert only.isdecimal()
    assert "prompts" in str(caught.value)
    monkeypatch.undo()
    repeated = execute(sys.executable, *shlex.split(command)[1:], cwd=ROOT)
    assert repeated.returncode == 0, repeated.stdout
    assert "server memory 2025-11-25: 200 messages" in repeated.stdout
    assert not repeated.stderr


def test_every_transport_is_tried_in_both_roles() -> None:
    assert {transport.partition("-")[0] for _, transport in TRANSPORTS} == {"memory", "stdio", "sse", "http"}
    assert sum(trial.count for trial in trials(20_000)) == pytest.approx(20_000, rel=0.01)
