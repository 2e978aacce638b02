"""Protocol state of one side, without a connection: received messages, their events, and the replies."""

from __future__ import annotations

import json
import math
import random
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_bindgen.runtime import ConnectionClosed, Json, Model, Notification, ProtocolError, RequestMethod, handles
from mcp_bindgen.runtime.protocol.connection import Connection, State
from mcp_bindgen.runtime.protocol.events import (
    Answered,
    CancelRequested,
    Event,
    Notified,
    Progressed,
    Rejected,
    Requested,
)
from mcp_bindgen.runtime.protocol.jsonrpc import typed_params
from mcp_bindgen.v2025_11_25 import Server, methods
from mcp_bindgen.v2025_11_25 import types as mcp
from mcp_bindgen.v2026_07_28 import types as stateless
from mcp_bindgen.v2026_07_28.methods import SUBSCRIPTIONS_LISTEN
from tests.harness.checked_connections import (
    INITIALIZED,
    STATEFUL,
    STATELESS,
    answer,
    bindings,
    copied,
    dispatchers_of,
    essence,
    feed,
    initialize,
    introduce,
    notification,
    only,
    oracle,
    ready,
    refusal,
    request,
    slow,
    spelled,
    takes,
)
from tests.harness.effort import each, examples
from tests.harness.json_instances import Instances, of_definitions

LATEST = "2025-11-25"
BATCHING = "2025-03-26"
PARSE, INVALID, UNKNOWN, PARAMS = -32700, -32600, -32601, -32602
TOO_LARGE = "Invalid request: the message is larger than 9 bytes"

every_revision = pytest.mark.parametrize("revision", STATEFUL)


# --- helpers --------------------------------------------------------------------------------------------------


def server(*revisions: str) -> Connection:
    """Return the peer of a server that has received no message."""
    return Connection("server", dispatchers_of(*(takes(revision, "server") for revision in revisions or [LATEST])))


def client(revision: str = LATEST) -> Connection:
    """Return the peer of a client after the handshake."""
    return ready(revision, "client")


def code_of(events: list[Event]) -> int:
    """Return the code of the only error among `events`."""
    (event,) = events
    assert isinstance(event, Rejected)
    return event.error.code


def asking() -> tuple[Connection, Any]:
    """Return a client that has sent a ping, and the pending ping."""
    connection = client()
    return connection, connection.request(methods.PING, None)[0]


def event_code(event: Answered) -> int:
    """Return the code of the error that a request ends with."""
    assert isinstance(event.error, ProtocolError)
    return event.error.code


NO_ID = "no id"


def refused(events: list[Event]) -> tuple[int, object]:
    """Return the error code and the id of the reply: `NO_ID` for a reply without an id, `None` without a reply."""
    answered = reply(events)
    id_ = answered if answered is None else answered.get("id", NO_ID)
    assert (id_ is None) is (answered is None)
    return code_of(events), id_


def reply(events: list[Event]) -> Any:
    """Return the reply to `events`, or `None`."""
    data = b"".join(event.reply for event in events if isinstance(event, Rejected))
    return json.loads(data) if data else None


def ping(id_: object = 1) -> dict[str, Any]:
    return request(id_, "ping")


def call(id_: object, name: object = "echo", **more: Any) -> dict[str, Any]:
    return request(id_, "tools/call", {"name": name, **more})


def asked(events: list[Event]) -> list[object]:
    """Return the ids of the requests among `events`."""
    return [event.id for event in events if isinstance(event, Requested)]


PING_PARAMS = mcp.RequestParams()


# --- ids and pending requests ---------------------------------------------------------------------------------


def test_ids_are_never_used_twice() -> None:
    connection, seen = client(), list[int]()
    for turn in range(50):
        pending, data = connection.request(methods.PING, None)
        assert json.loads(data) == ping(pending.id)
        seen.append(pending.id)
        if turn % 3 == 0:
            feed(connection, answer(pending.id, {}))
        elif turn % 3 == 1:
            connection.cancel(pending, "enough")
    assert len(set(seen)) == 50


def test_responses_are_matched_to_requests_in_any_order() -> None:
    connection = client()
    pending = [connection.request(methods.PING, None)[0] for _ in range(4)]
    for one in (pending[2], pending[0], pending[3]):
        event = only(Answered, feed(connection, answer(one.id, {"_meta": {"n": one.id}})))
        assert event.pending is one
        assert event.result == mcp.Result(meta={"n": one.id})
    assert list(connection.pending.values()) == [pending[1]]


def test_a_subscription_ends_when_the_server_cancels_it() -> None:
    connection = client("2026-07-28")
    wanted = stateless.SubscriptionsListenRequestParams.model_construct(notifications=stateless.SubscriptionFilter())
    listening, _ = connection.request(SUBSCRIPTIONS_LISTEN, wanted)
    event = only(Answered, feed(connection, notification("notifications/cancelled", {"requestId": listening.id})))
    assert (event.pending, connection.pending) == (listening, {})


@each("known", [answer("1", {}), refusal("1", -1), {"jsonrpc": "2.0", "id": "1"}])
def test_the_id_of_a_response_may_be_the_number_as_text(known: dict[str, Any]) -> None:
    """The official SDKs accept it too."""
    for revision, wrap in ((LATEST, False), (BATCHING, True)):
        connection = client(revision)
        pending, _ = connection.request(bindings(revision).methods.PING, None)
        assert only(Answered, feed(connection, [known] if wrap else known)[:1]).pending is pending


def test_progress_and_the_end_of_a_subscription_may_name_the_number_as_text() -> None:
    connection, pending = asking()
    told = notification("notifications/progress", {"progressToken": str(pending.id), "progress": 1})
    assert only(Progressed, feed(connection, told)).pending is pending
    connection = client("2026-07-28")
    wanted = stateless.SubscriptionsListenRequestParams.model_construct(notifications=stateless.SubscriptionFilter())
    listening, _ = connection.request(SUBSCRIPTIONS_LISTEN, wanted)
    ended = feed(connection, notification("notifications/cancelled", {"requestId": str(listening.id)}))
    assert only(Answered, ended).pending is listening


def test_a_string_id_of_the_peer_differs_from_a_number_id() -> None:
    theirs = ready(LATEST)
    assert asked(feed(theirs, ping(1)) + feed(theirs, ping("1"))) == [1, "1"]
    assert (json.loads(theirs.respond("1", {})), json.loads(theirs.respond(1, {}))) == (answer("1", {}), answer(1, {}))


def test_an_integer_id_may_have_a_decimal_point() -> None:
    connection, pending = asking()
    assert only(Answered, feed(connection, b'{"jsonrpc":"2.0","id":1.0,"result":{}}')).pending is pending
    theirs = ready(LATEST)
    assert asked(feed(theirs, b'{"jsonrpc":"2.0","id":7.0,"method":"ping"}')) == [7]
    assert code_of(feed(theirs, ping(7))) == INVALID


@each("id_", [0, -1, 2**53 + 1, 10**400, "", "null", "\u0000", "é\U0001f600", 'a"b\\c\n'])
def test_a_response_has_the_exact_id_of_its_request(id_: object) -> None:
    connection = ready(LATEST)
    event = only(Requested, feed(connection, ping(id_)))
    assert (event.id, json.loads(connection.respond(event.id, {}))) == (id_, answer(id_, {}))
    assert asked(feed(connection, ping(id_))) == [id_]
    failed = json.loads(connection.fail(event.id, ProtocolError(5, "five", {"a": 1})))
    assert failed == {"jsonrpc": "2.0", "id": id_, "error": {"code": 5, "message": "five", "data": {"a": 1}}}


def test_both_sides_may_use_the_same_id_at_once() -> None:
    connection = ready(LATEST)
    pending, _ = connection.request(methods.PING, None)
    assert asked(feed(connection, ping(pending.id))) == [pending.id]
    assert json.loads(connection.respond(pending.id, {})) == answer(pending.id, {})
    assert pending.id in connection.pending
    only(Answered, feed(connection, answer(pending.id, {})))
    assert (connection.pending, connection.handling) == ({}, {})


def test_a_second_request_with_an_id_in_flight_is_refused() -> None:
    connection = ready(LATEST)
    assert (asked(feed(connection, ping(3))), refused(feed(connection, call(3)))) == ([3], (INVALID, 3))
    assert (json.loads(connection.respond(3, {})), asked(feed(connection, call(3)))) == (answer(3, {}), [3])


def test_a_request_gets_only_one_response() -> None:
    connection = ready(LATEST)
    feed(connection, ping(3))
    assert connection.respond(3, {})
    assert connection.respond(3, {}) == connection.fail(3, ProtocolError(1, "x")) == connection.drop(3) == b""
    assert connection.respond("never", {}) == b""


@each("id_", [99, "x", "1" * 5000, None, 1.5, True, [1]])
def test_a_response_to_an_unknown_request_is_ignored(id_: object) -> None:
    connection, pending = asking()
    assert feed(connection, answer(id_, {})) == feed(connection, refusal(id_, -1)) == []
    assert feed(connection, {"jsonrpc": "2.0", "error": {"code": PARSE, "message": "what?"}}) == []
    assert list(connection.pending) == [pending.id]


def test_a_late_response_is_ignored() -> None:
    connection, pending = asking()
    connection.cancel(pending, "enough")
    assert feed(connection, answer(pending.id, {})) == feed(connection, refusal(pending.id, 1)) == []
    again, _ = connection.request(methods.PING, None)
    feed(connection, answer(again.id, {}))
    assert feed(connection, answer(again.id, {})) == []


@each("result", [None, [], "x", {"tools": 1}, {"tools": [{}], "nextCursor": 1}])
def test_an_invalid_result_fails_its_request(result: object) -> None:
    connection = client()
    pending, _ = connection.request(methods.LIST_TOOLS, None)
    event = only(Answered, feed(connection, answer(pending.id, result)))
    assert (event_code(event), "tools/list" in str(event.error), connection.pending) == (INVALID, True, {})


@each(
    ("body", "code", "message", "data"),
    [
        ({"code": -5, "message": "no", "data": [1]}, -5, "no", [1]),
        ({"code": -5, "message": "no"}, -5, "no", None),
        ({"code": "x", "message": 1}, -32603, "", None),
        ({"code": True, "message": ""}, -32603, "", None),
        ({}, -32603, "", None),
        (None, INVALID, None, None),
        ("no", INVALID, None, None),
    ],
)
def test_malformed_errors_are_read(body: object, code: int, message: str | None, data: Any) -> None:
    connection, pending = asking()
    event = only(Answered, feed(connection, {"jsonrpc": "2.0", "id": pending.id, "error": body}))
    assert isinstance(event.error, ProtocolError)
    assert (event.error.code, event.error.data) == (code, data)
    assert message is None or event.error.message == message


@each("order", [["jsonrpc", "id", "result", "error"], ["error", "result", "id", "jsonrpc"]])
def test_a_null_member_beside_result_or_error_is_ignored(order: list[str]) -> None:
    """Some peers send the unused member as `null`."""
    for result, failed, expected in (({}, None, None), (None, {"code": 7, "message": "no"}, 7)):
        connection, pending = asking()
        message = {"jsonrpc": "2.0", "id": pending.id, "result": result, "error": failed}
        event = only(Answered, feed(connection, {name: message[name] for name in order}))
        assert getattr(event.error, "code", None) == expected


def test_the_last_of_duplicate_id_members_is_used() -> None:
    connection, first = asking()
    second, _ = connection.request(methods.PING, None)
    event = only(Answered, feed(connection, b'{"jsonrpc":"2.0","id":%d,"result":{},"id":%d}' % (first.id, second.id)))
    assert event.pending is second
    assert list(connection.pending) == [first.id]


# --- unusable input -------------------------------------------------------------------------------------------


PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"'
NO_JSON = [b"", b" ", b"{", PING, PING[:-3], PING + b"}}", PING + b"} " + PING + b"}", PING + b",}", PING + b"}\x00"]
NO_JSON += [PING + b',"x":NaN}', PING + b',"x":-Infinity}', PING + b',"params":{"x":NaN}}', PING + b',"x":"\xff"}']
NO_JSON += [PING + b',"params":{"x":"\xc3("}}', PING + b',"params":{"x":"\\ud80"}}', b"\xef\xbb\xbf" + PING + b"}"]
NO_JSON += [PING.replace(b":1,", id_) + b"}" for id_ in (b":NaN,", b":01,", b":" + b"1" * 10_000 + b",")]
NO_JSON += [PING.replace(b'"', b"'") + b"}", b"Server started!", b"[" * 10_000 + b"]" * 10_000]
NO_JSON += [
    PING + rb',"params":{"a":"\ud83d","b":' + more + b"}}" for more in (b"NaN", b"1e999", b"[" * 500 + b"]" * 500)
]
NO_JSON += [PING + rb',"params":{"a":"\ud83d","b":' + b"[" * 10_000 + b"]" * 10_000 + b"}}"]
NO_JSON += [PING + b',"params":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001]


@each("data", NO_JSON)
def test_invalid_json_is_a_parse_error(data: bytes) -> None:
    for connection in (ready(LATEST), client(), server()):
        events = feed(connection, data)
        assert (refused(events), reply(events)["error"]["code"], connection.handling) == ((PARSE, NO_ID), PARSE, {})


HALVES = [rb"\ud83d", rb"\uD83Dx", rb"\udc00", rb"\ud83d\u0041", rb"\ude00\ud83d", rb"\\\ud83d", rb"\ud83d\ud83d\ude00"]


@each("half", HALVES)
def test_a_request_with_half_of_a_surrogate_pair_is_refused_under_its_id(half: bytes) -> None:
    """It is valid JSON text (RFC 8259, 8.2)."""
    for member in (b'"x":"%b"', b'"%b":1', b'"_meta":{"x":["%b"]}'):
        message = PING + b',"params":{' + member % half + b"}}"
        for connection in (ready(LATEST), client(), server()):
            assert (refused(feed(connection, message)), connection.handling) == ((PARAMS, 1), {})
            named = message.replace(b'"id":1', b'"id":"%b"' % half)
            assert refused(feed(connection, named)) == (PARAMS, json.loads(b'"%b"' % half))
        connection = ready(BATCHING)
        events = feed(connection, b"[" + message + b"," + PING.replace(b":1,", b":2,") + b"}]")
        assert (asked(events), next(event.id for event in events if isinstance(event, Rejected))) == ([2], 1)


@each("half", HALVES)
def test_half_of_a_surrogate_pair_is_replaced_in_responses_and_notifications(half: bytes) -> None:
    connection, pending = asking()
    event = only(Answered, feed(connection, b'{"id":%d,"jsonrpc":"2.0","result":{"x":"%b"}}' % (pending.id, half)))
    assert "\ufffd" in event.result.x
    connection = client()
    told = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%b"}}' % half
    assert "\ufffd" in only(Notified, feed(connection, told)).params.data


def test_null_params_are_absent_params() -> None:
    connection = ready(LATEST)
    assert asked(feed(connection, {**request(1, "tools/list"), "params": None})) == [1]
    assert refused(feed(connection, {**request(2, "tools/call"), "params": None})) == (PARAMS, 2)
    only(Notified, feed(connection, {**notification("notifications/roots/list_changed"), "params": None}))
    assert code_of(feed(connection, {**notification("notifications/progress"), "params": None})) == PARAMS


@each("data", [b'{"jsonrpc":"2.0","id":1,"result":{}', b'{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}'])
def test_a_damaged_response_fails_its_request(data: bytes) -> None:
    connection, pending = asking()
    event = only(Answered, feed(connection, data))
    assert event.pending is pending
    assert (event_code(event), connection.pending) == (PARSE, {})


@every_revision
@each("members", [{}, {"Result": {}}, {"method": None, "result": {}}])
def test_a_response_without_a_result_or_an_error_fails_its_request(revision: str, members: dict[str, Any]) -> None:
    for wrap in (False, True):
        connection = client(revision)
        pending, _ = connection.request(bindings(revision).methods.PING, None)
        message = {"jsonrpc": "2.0", "id": pending.id, **members}
        event = only(Answered, feed(connection, [message] if wrap else message)[:1])
        assert (event.pending, event_code(event), connection.pending) == (pending, INVALID, {})


def test_damaged_json_without_a_result_fails_no_request() -> None:
    connection, pending = asking()
    assert (code_of(feed(connection, b'{"jsonrpc":"2.0","id":1')), list(connection.pending)) == (PARSE, [pending.id])


@each("message", [1, "ping", None, True, 1.5])
def test_a_message_is_an_object(message: object) -> None:
    assert refused(feed(ready(LATEST), message)) == (INVALID, NO_ID)


@each("version", [None, "1.0", 2.0, 2, "2.00", ["2.0"]])
def test_the_jsonrpc_version_must_be_2_0(version: object) -> None:
    for state in (ready(LATEST), server()):
        assert refused(feed(state, {**ping(5), "jsonrpc": version})) == (INVALID, 5)
    assert reply(feed(ready(LATEST), {name: value for name, value in ping(5).items() if name != "jsonrpc"}))["id"] == 5
    connection, pending = asking()
    event, rejected = feed(connection, {**answer(pending.id, {}), "jsonrpc": version})
    assert isinstance(event, Answered)
    assert refused([rejected]) == (INVALID, None)  # nobody answers a response
    assert (event_code(event), '"jsonrpc": "2.0"' in str(event.error)) == (INVALID, True)


@each("id_", [None, True, False, 1.5, [1], {}, 1e-300])
def test_an_id_must_be_a_string_or_an_integer(id_: object) -> None:
    connection = ready(LATEST)
    assert (refused(feed(connection, ping(id_))), connection.handling) == ((INVALID, NO_ID), {})


def test_an_infinite_id_is_refused() -> None:
    assert code_of(feed(ready(LATEST), b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}')) == INVALID


@each("method", [1, None, ["ping"], {"ping": 1}, True])
def test_a_method_must_be_a_string(method: object) -> None:
    assert refused(feed(ready(LATEST), request(5, "ping") | {"method": method})) == (INVALID, 5)
    assert refused(feed(ready(LATEST), {"jsonrpc": "2.0", "method": method})) == (INVALID, NO_ID)


@each("message", [{}, {"jsonrpc": "2.0"}, {"jsonrpc": "2.0", "id": 5}, {"foo": "boo"}])
def test_a_message_that_is_neither_request_nor_response_is_refused(message: dict[str, Any]) -> None:
    events = feed(ready(LATEST), message)
    assert (code_of(events), reply(events).get("id")) == (INVALID, message.get("id"))


@each("method", ["tools/explode", "", "Ping", "ping ", "sampling/createMessage", "rpc.discover"])
def test_an_unknown_method_is_refused(method: str) -> None:
    assert refused(feed(ready(LATEST), request(5, method))) == (UNKNOWN, 5)
    assert refused(feed(ready(LATEST), notification(method))) == (UNKNOWN, None)


def test_requests_and_notifications_are_not_interchangeable() -> None:
    assert refused(feed(ready(LATEST), notification("ping"))) == (UNKNOWN, None)
    assert refused(feed(ready(LATEST), request(5, "notifications/initialized"))) == (UNKNOWN, 5)


SECRET = "s3cret"


@each(
    ("method", "params", "path"),
    [
        ("tools/call", None, "params"),
        ("tools/call", {}, "params.name"),
        ("tools/call", [SECRET], "params"),
        ("tools/call", SECRET, "params"),
        ("tools/call", {"name": {"x": SECRET}}, "params.name"),
        ("tools/call", {"name": "x", "arguments": SECRET}, "params.arguments"),
        ("tools/call", {"name": "x", "_meta": {"progressToken": [SECRET]}}, "params._meta.progressToken"),
        ("tools/call", {"name": "x", "task": {"ttl": SECRET}}, "params.task.ttl"),
        ("completion/complete", {"ref": {"type": SECRET}, "argument": {"name": "a", "value": "b"}}, "params.ref"),
        ("logging/setLevel", {"level": SECRET}, "params.level"),
        ("ping", [SECRET], "params"),
    ],
)
def test_an_error_for_invalid_params_has_the_path_but_not_the_value(method: str, params: object, path: str) -> None:
    connection = ready(LATEST)
    events = feed(connection, request(5, method, params))
    assert code_of(events) == PARAMS
    answered = reply(events)
    assert answered["id"] == 5
    problems = answered["error"]["data"]
    assert any(problem["path"].startswith(path) for problem in problems), problems
    assert all(set(problem) == {"path", "problem"} for problem in problems)
    text = json.dumps(answered)
    for word in (SECRET, "Traceback", "pydantic", "http", ".py", "0x"):
        assert word not in text
    assert not connection.handling


@every_revision
def test_error_responses_are_valid_against_the_schema(revision: str) -> None:
    for message in (b"{", 1, {}, ping(None), request(1, "nope"), call(2, 5), [], [ping()], {**ping(), "jsonrpc": "1"}):
        answered = reply(feed(ready(revision), message))
        assert answered is None or oracle(revision).message(answered) == []


def test_an_invalid_notification_gets_no_response() -> None:
    assert refused(feed(ready(LATEST), notification("notifications/cancelled", {"requestId": []}))) == (PARAMS, None)


def test_an_oversized_message_gets_an_error_or_fails_its_pending_request() -> None:
    connection, pending = asking()
    (refused,) = connection.receive_oversized(9, json.dumps(request(7, "ping")).encode()[:40])
    assert reply([refused]) == {**refusal(7, INVALID), "error": {"code": INVALID, "message": TOO_LARGE}}
    for head in (b"", b'{"jsonrpc":"2.0","id":7', b'{"params":{"id":7},"jsonrpc":"2.0","id":1', b"["):
        (refused,) = connection.receive_oversized(9, head)
        assert "id" not in reply([refused])
    assert connection.receive_oversized(9, b'{"jsonrpc":"2.0","id":99,"result":{') == []
    event = only(Answered, connection.receive_oversized(9, b'{"jsonrpc":"2.0","id":%d,"result":{' % pending.id))
    assert event.pending is pending
    assert TOO_LARGE in str(event.error)
    assert not connection.pending


# --- params ---------------------------------------------------------------------------------------------------


def test_params_may_be_absent_where_nothing_is_required() -> None:
    for message in (ping(), request(1, "ping", {})):
        assert only(Requested, feed(ready(LATEST), message)).params == PING_PARAMS


class Own(Server):
    """Server with custom methods, whose params have any type."""

    @handles(RequestMethod("own/none", "client", None, Json))
    async def none(self, ctx: Any) -> None: ...

    @handles(RequestMethod("own/list", "client", list[int], Json, params_required=False))
    async def list(self, params: Any, ctx: Any) -> None: ...

    @handles(RequestMethod("own/any", "client", Json, Json))
    async def any(self, params: Any, ctx: Any) -> None: ...

    @handles(Notification("own/told", "client", int))
    async def told(self, params: Any, ctx: Any) -> None: ...


@each("spelling", [b'{"jsonrpc":"2.0",%b}', b'{%b,"\\u006asonrpc":"2.0","more":[]}'])
@each(
    ("text", "params"),
    [
        (b'"id":1,"method":"own/none"', None),
        (b'"id":1,"method":"own/none","params":{"x":1}', None),
        (b'"id":1,"method":"own/list","params":[]', []),
        (b'"id":1,"method":"own/list","params":[0]', [0]),
        (b'"id":1,"method":"own/any","params":false', False),
        (b'"id":1,"method":"own/any","params":null', None),
        (b'"method":"own/told","params":0', 0),
    ],
)
def test_custom_methods_may_have_params_of_any_type(spelling: bytes, text: bytes, params: object) -> None:
    (event,) = feed(ready(LATEST, target=Own), spelling % text)
    assert isinstance(event, Requested | Notified)
    assert event.params == params


def test_missing_or_invalid_params_of_custom_methods_are_refused() -> None:
    for message in (request(1, "own/any"), request(1, "own/list"), request(1, "own/list", ["x"])):
        assert code_of(feed(ready(LATEST, target=Own), message)) == PARAMS


def test_readers_of_params_are_shared_between_connections() -> None:
    """Otherwise a server would keep the readers of each past connection."""
    first, second = (takes(LATEST, "server", Own).routes["own/any"] for _ in range(2))
    assert first is second


# --- batches --------------------------------------------------------------------------------------------------


def test_the_responses_to_a_batch_are_sent_together() -> None:
    connection, told = ready(BATCHING), notification("notifications/roots/list_changed")
    events = feed(connection, [ping("a"), told, call("b"), 5, request("c", "nope"), call("d", 1), call("e")])
    assert (asked(events), sum(isinstance(event, Notified) for event in events)) == (["a", "b", "e"], 1)
    assert reply(events) is None
    assert (connection.respond("b", {"content": []}), connection.fail("e", ProtocolError(1, "one"))) == (b"", b"")
    parts = json.loads(connection.respond("a", {}))
    assert oracle(BATCHING).problems("JSONRPCBatchResponse", [{"id": 0, **part} for part in parts]) == []
    assert [part.get("id") for part in parts] == [None, "c", "d", "b", "e", "a"]
    codes = {part.get("id"): part["error"]["code"] for part in parts if "error" in part}
    assert codes == {None: INVALID, "c": UNKNOWN, "d": PARAMS, "e": 1}


def test_a_single_response_does_not_wait_for_a_batch() -> None:
    connection = ready(BATCHING)
    assert (asked(feed(connection, [ping(1), ping(2)]) + feed(connection, ping(3))), connection.respond(1, {})) == (
        [1, 2, 3],
        b"",
    )
    assert json.loads(connection.respond(3, {})) == answer(3, {})
    assert json.loads(connection.respond(2, {})) == [answer(1, {}), answer(2, {})]


def test_a_batch_of_notifications_is_not_answered() -> None:
    connection, told = ready(BATCHING), notification("notifications/roots/list_changed")
    events = feed(connection, [told, told, notification("nope")])
    assert [type(event) for event in events] == [Notified, Notified, Rejected]
    assert reply(events) is None


def test_an_empty_batch_is_refused_by_one_error() -> None:
    events = feed(ready(BATCHING), [])
    assert code_of(events) == INVALID
    assert isinstance(reply(events), dict)


def test_a_batch_of_invalid_messages_gets_its_errors_at_once() -> None:
    assert [part["error"]["code"] for part in reply(feed(ready(BATCHING), [1, [], [ping()]]))] == [INVALID] * 3


def test_a_duplicate_id_in_a_batch_is_refused() -> None:
    connection = ready(BATCHING)
    assert asked(feed(connection, [ping(1), ping(1)])) == [1]
    parts = json.loads(connection.respond(1, {}))
    assert ([part["id"] for part in parts], sorted("error" in part for part in parts)) == ([1, 1], [False, True])


def test_a_cancelled_request_in_a_batch_gets_no_response() -> None:
    connection = ready(BATCHING)
    feed(connection, [ping(1), ping(2)])
    assert (connection.respond(1, {}), json.loads(connection.drop(2))) == (b"", [answer(1, {})])
    feed(connection, [ping(3), ping(4)])
    assert connection.drop(3) == connection.drop(4) == b""


def test_a_client_reads_responses_in_batches() -> None:
    connection = client(BATCHING)
    pings: Any = bindings(BATCHING).methods.PING
    first, second = connection.request(pings, None)[0], connection.request(pings, None)[0]
    events = feed(connection, [answer(second.id, {}), refusal(first.id, 5), answer(99, {})])
    assert ([event.pending for event in events if isinstance(event, Answered)], len(events)) == ([second, first], 2)


@each("known", [[BATCHING], [BATCHING, LATEST], ["2024-11-05", BATCHING]])
def test_initialize_in_a_batch_is_refused(known: list[str]) -> None:
    connection = server(*known)
    events = feed(connection, [initialize(BATCHING)])
    assert asked(events) == []
    answered = reply(events)
    assert {part["error"]["code"] for part in (answered if isinstance(answered, list) else [answered])} == {INVALID}
    assert connection.state is State.NEW
    introduce(connection, BATCHING)
    assert asked(feed(connection, [ping(1)])) == [1]


@each("revision", [revision for revision in STATEFUL if revision != BATCHING])
def test_other_revisions_have_no_batches(revision: str) -> None:
    for message in ([ping()], [INITIALIZED], []):
        events = feed(ready(revision), message)
        assert code_of(events) == INVALID
        assert isinstance(reply(events), dict)


# --- lifecycle ------------------------------------------------------------------------------------------------


@every_revision
def test_a_server_answers_only_ping_before_the_end_of_the_handshake(revision: str) -> None:
    connection = server(revision)
    assert (asked(feed(connection, ping("a"))), code_of(feed(connection, request(1, "tools/list")))) == (["a"], INVALID)
    assert (code_of(feed(connection, request(1, "nope"))), asked(feed(connection, initialize(revision)))) == (
        INVALID,
        [0],
    )
    connection.negotiated()
    connection.respond(0, {})
    assert (asked(feed(connection, ping("b"))), code_of(feed(connection, request(1, "tools/list")))) == (["b"], INVALID)
    assert code_of(feed(connection, initialize(revision, id_=2))) == INVALID
    feed(connection, INITIALIZED)
    assert asked(feed(connection, request(1, "tools/list"))) == [1]


@every_revision
@each("params", [None, {}, [], 7, {"_meta": 1}, {"_meta": None}])
def test_initialized_ends_the_handshake_whatever_its_params(revision: str, params: object) -> None:
    connection = server(revision)
    feed(connection, initialize(revision))
    connection.negotiated()
    feed(connection, {**INITIALIZED, "params": params})
    assert connection.state is State.READY


def test_a_client_answers_only_ping_during_the_handshake() -> None:
    connection = Connection("client", dispatchers_of(takes(LATEST, "client")))
    assert (asked(feed(connection, ping(1))), code_of(feed(connection, request(2, "roots/list")))) == ([1], INVALID)
    connection.negotiated()
    assert asked(feed(connection, request(2, "roots/list"))) == [2]


def test_initialized_has_no_effect_before_initialize() -> None:
    connection = server()
    assert [event for event in feed(connection, INITIALIZED) if not isinstance(event, Rejected)] == []
    assert connection.state is State.NEW
    assert code_of(feed(connection, request(1, "tools/list"))) == INVALID
    introduce(connection, LATEST)


@every_revision
@pytest.mark.parametrize("spelling", ['"method"', '"\\u006dethod"'])
def test_a_second_initialize_is_refused(revision: str, spelling: str) -> None:
    connection = ready(revision)
    message = json.dumps(initialize(revision, id_=9)).replace('"method"', spelling).encode()
    assert refused(feed(connection, message)) == (INVALID, 9)
    assert connection.state is State.READY


def test_initialize_while_another_is_being_answered_is_refused() -> None:
    connection = server()
    assert asked(feed(connection, initialize(LATEST, id_=1))) == [1]
    assert code_of(feed(connection, initialize(LATEST, id_=2))) == INVALID
    connection.fail(1, ProtocolError(1, "not today"))
    assert asked(feed(connection, initialize(LATEST, id_=3))) == [3]


def test_a_closed_connection_sends_and_handles_no_messages() -> None:
    connection, first = asking()
    second, _ = connection.request(methods.PING, None)
    feed(connection, ping(5))
    failed = connection.close("gone")
    assert [answered.pending for answered in failed] == [first, second]
    assert all(isinstance(one.error, ConnectionClosed) and str(one.error) == "gone" for one in failed)
    assert connection.close("again") == []
    assert feed(connection, answer(first.id, {})) == feed(connection, ping()) == feed(connection, b"{") == []
    assert connection.respond(5, {}) == connection.cancel(second, "late") == b""
    with pytest.raises(ConnectionClosed):
        connection.request(methods.PING, None)
    with pytest.raises(ConnectionClosed):
        connection.notify(methods.PROGRESS, mcp.ProgressNotificationParams(progress=1, progress_token=1))


# --- revisions ------------------------------------------------------------------------------------------------


@each("wanted", STATEFUL)
def test_a_server_speaks_the_revision_of_the_client_if_it_can(wanted: str) -> None:
    connection = server(*STATEFUL)
    event = only(Requested, feed(connection, initialize(wanted)))
    assert connection.dispatcher.revision.name == wanted
    assert type(event.params) is bindings(wanted).types.InitializeRequestParams


@each("wanted", ["1999-01-01", "2099-01-01", "2026-07-28", "", "latest"])
def test_an_unknown_requested_revision_gets_the_newest_revision_of_the_server(wanted: str) -> None:
    connection = server(*STATEFUL[:3])
    assert (asked(feed(connection, initialize(wanted))), connection.dispatcher.revision.name) == ([0], STATEFUL[2])


def test_a_failed_initialize_does_not_set_the_revision() -> None:
    connection, broken = server(*STATEFUL), initialize("2024-11-05")
    del broken["params"]["clientInfo"]
    assert (code_of(feed(connection, broken)), asked(feed(connection, initialize("1999-01-01")))) == (PARAMS, [0])
    assert connection.dispatcher.revision.name == LATEST


@each("params", [None, {}, [], {"protocolVersion": 5}, {"protocolVersion": None}])
def test_initialize_without_valid_params_is_refused(params: object) -> None:
    connection = server()
    assert code_of(feed(connection, request(1, "initialize", params))) == PARAMS
    assert connection.state is State.NEW


def test_each_revision_has_its_own_methods() -> None:
    for revision, known in (("2024-11-05", False), (LATEST, True)):
        connection = server(*STATEFUL)
        introduce(connection, revision)
        assert (asked(feed(connection, request(1, "tasks/list"))) == [1]) is known


# --- cancellation and progress --------------------------------------------------------------------------------


@every_revision
def test_the_cancellation_of_an_outgoing_request_sends_one_notification(revision: str) -> None:
    connection = client(revision)
    pending, _ = connection.request(bindings(revision).methods.PING, None)
    message = json.loads(connection.cancel(pending, "enough"))
    assert message == notification("notifications/cancelled", {"requestId": pending.id, "reason": "enough"})
    assert (oracle(revision).message(message), connection.cancel(pending, "again")) == ([], b"")


def test_an_answered_request_cannot_be_cancelled() -> None:
    connection, pending = asking()
    feed(connection, answer(pending.id, {}))
    assert connection.cancel(pending, "late") == b""


def test_initialize_is_not_cancelled() -> None:
    ours = Connection("client", dispatchers_of(takes(LATEST, "client")))
    pending, _ = ours.request(methods.INITIALIZE, typed_params(methods.INITIALIZE, initialize(LATEST)["params"]))
    assert (ours.cancel(pending, "too slow"), feed(ours, answer(pending.id, {}))) == (b"", [])
    theirs = server()
    assert asked(feed(theirs, initialize(LATEST))) == [0]
    events = feed(theirs, notification("notifications/cancelled", {"requestId": 0}))
    assert not any(isinstance(event, CancelRequested) for event in events)
    assert json.loads(theirs.respond(0, {})) == answer(0, {})


@each("id_", [5, "5"])
def test_a_cancelled_incoming_request_gets_no_response(id_: object) -> None:
    for state in (ready(LATEST), client()):
        assert asked(feed(state, ping(id_))) == [id_]
        told = notification("notifications/cancelled", {"requestId": id_, "reason": "enough"})
        assert feed(state, told) == [CancelRequested(id_, "enough")]  # type: ignore[arg-type]
        assert state.drop(id_) == b""  # type: ignore[arg-type]
        assert state.respond(id_, {}) == b""  # type: ignore[arg-type]


@each("id_", [6, "5", "x", None])
def test_the_cancellation_of_an_unknown_request_cancels_nothing(id_: object) -> None:
    connection = ready(LATEST)
    feed(connection, ping(5))
    events = feed(connection, notification("notifications/cancelled", {} if id_ is None else {"requestId": id_}))
    assert ([type(event) for event in events], list(connection.handling)) == ([Notified], [5])


def test_progress_is_matched_to_its_request() -> None:
    connection = client()
    first, data = connection.request(methods.CALL_TOOL, mcp.CallToolRequestParams(name="a"), progress=True)
    assert json.loads(data)["params"] == {"name": "a", "_meta": {"progressToken": first.id}}
    second, data = connection.request(methods.PING, None, progress=True)
    assert json.loads(data)["params"] == {"_meta": {"progressToken": second.id}}
    for one in (second, first):
        wire = {"progressToken": one.id, "progress": 0.5, "total": 1}
        event = only(Progressed, feed(connection, notification("notifications/progress", wire)))
        assert event.pending is one
        assert event.params.progress == 0.5
    connection.cancel(first, "enough")
    for token in (first.id, str(first.id), "x", 99):
        events = feed(connection, notification("notifications/progress", {"progressToken": token, "progress": 1}))
        assert [type(event) for event in events] == [Notified]


def test_a_progress_token_keeps_the_other_params_and_metadata() -> None:
    connection, meta = client(), mcp.RequestMeta(**{"x/y": 2**60})
    params = mcp.CallToolRequestParams(name="a", arguments={"n": 10**30, "é": None}, meta=meta)
    pending, data = connection.request(methods.CALL_TOOL, params, progress=True)
    written = {"name": "a", "arguments": {"n": 10**30, "é": None}}
    assert json.loads(data)["params"] == {**written, "_meta": {"x/y": 2**60, "progressToken": pending.id}}


# --- fast parser and general parser ---------------------------------------------------------------------------

run = settings(
    max_examples=examples(3, 20),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


NUMERIC = st.sampled_from([0, 7, -1, 2**53 + 1, 10**30, "7", "0", "", "-1", "1.0", "é", "null"])
MORE: list[Any] = [{}, {"x": {"method": "ping", "jsonrpc": "1.0", "id": 3}}, {"result": {}, "x": None}]
MORE += [{"trace": [{"method": "tools/list"}], "_meta": {}}, {"error": {"code": 1, "message": ""}}]
NESTED = st.sampled_from(MORE)


@cache
def instances(revision: str) -> Instances:
    return of_definitions(oracle(revision).definitions)


@cache
def envelopes(revision: str, role: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for the messages that a side of a revision may send."""

    def whole(message: dict[str, Any], id_: object, more: dict[str, Any]) -> dict[str, Any]:
        is_request = oracle(revision).methods[message["method"]].kind == "request"
        params = {"params": message["params"]} if "params" in message else {}
        return {**more, "jsonrpc": "2.0", "method": message["method"], **({"id": id_} if is_request else {}), **params}

    kinds = st.one_of([instances(revision).strategy_of(f"{role}{kind}") for kind in ("Request", "Notification")])
    return st.builds(whole, kinds, NUMERIC, NESTED)


@every_revision
@pytest.mark.parametrize("role", ["Client", "Server"])
@run
@given(data=st.data())
def test_the_fast_parser_and_the_general_parser_agree(revision: str, role: str, data: st.DataObject) -> None:
    message, dice = data.draw(envelopes(revision, role)), random.Random(data.draw(st.integers(0, 2**32)))
    connection = ready(revision) if role == "Client" else client(revision)
    tidy = json.dumps({name: message[name] for name in ("jsonrpc", "id", "method", "params") if name in message})
    expected, initialization = essence(feed(slow(connection), tidy.encode())), message["method"] == "initialize"
    assert expected[0][0] in ({"rejected"} if initialization else {"asked", "told", "cancel", "progress"})  # type: ignore[index]
    for text in (tidy, json.dumps(message), spelled(message, dice)):
        assert [essence(feed(one(connection), text.encode())) for one in (slow, copied)] == [expected] * 2


@pytest.mark.full
@every_revision
@run
@given(data=st.data())
def test_both_parsers_agree_on_responses(revision: str, data: st.DataObject) -> None:
    known = [method for method in oracle(revision).methods.values() if method.kind == "request"]
    method = data.draw(st.sampled_from(known))
    kinds = [instances(revision).strategy_of(kind.__name__) for kind in (method.result, *method.alternatives)]
    result, connection = data.draw(st.one_of(kinds)), client(revision)
    pending, _ = connection.request(method, None)
    dice = random.Random(data.draw(st.integers(0, 2**32)))
    expected = essence(feed(slow(connection), answer(pending.id, result)))
    assert expected[0][0] == "answered"  # type: ignore[index]
    assert expected[0][-1] == "None"  # type: ignore[index]
    for message in (answer(pending.id, result), {**answer(pending.id, result), "more": [{"id": 9, "error": 1}]}):
        for text in (json.dumps(message), spelled(message, dice)):
            assert [essence(feed(one(connection), text.encode())) for one in (copied, slow)] == [expected] * 2


@each("depth", [10, 150, 190, 194, 195, 196, 197, 198, 199, 200, 201, 202, 250])
def test_both_parsers_agree_on_nesting_depth(depth: int) -> None:
    connection, nested = ready(LATEST), '{"a":' * depth + "1" + "}" * depth
    nesting = '"method":"tools/call","params":{"name":"x","arguments":%s}', '"method":"ping","x":%s'
    for text in (f'{{"jsonrpc":"2.0","id":1,{part % nested}}}' for part in nesting):
        assert essence(feed(copied(connection), text.encode())) == essence(feed(slow(connection), text.encode()))


# --- messages that only one side sends ------------------------------------------------------------------------


@each("message", [request(1, "ping"), request("a", "roots/list"), request(2, "own"), {"id": 3}])
def test_a_stateless_client_answers_no_requests(message: Any) -> None:
    class Own(bindings(STATELESS).Client):  # type: ignore[misc]
        @handles(RequestMethod("own", "server", Model, Model, params_required=False))
        async def own(self, params: Any, ctx: Any) -> Any:
            raise AssertionError

    event = only(Rejected, feed(ready(STATELESS, "client", Own), message))
    assert event.reply == b""
    assert "Invalid request" in str(event.error)


@each("revision", [*STATEFUL, STATELESS])
def test_an_array_of_responses_is_an_error_in_revisions_without_batches(revision: str) -> None:
    connection = ready(revision, "client", bindings(revision).Client)
    method = connection.dispatcher.revision.request("tools/list")
    first, second, third = (connection.request(method, method.params.model_construct())[0] for _ in range(3))
    tools = {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    events = feed(
        connection, [answer(first.id, tools), {"jsonrpc": "2.0"}, refusal(second.id, -1), 7, answer("x", tools)]
    )
    answers = [event for event in events if isinstance(event, Answered)]
    assert ([event.pending for event in answers], list(connection.pending)) == ([first, second], [third.id])
    if revision == BATCHING:
        assert answers[0].result.tools == []
    else:
        assert len(events) == 2
        assert all("batches are not part of revision" in str(event.error) for event in answers)


REVISIONS = [*STATEFUL, STATELESS]
GOOD = {"name": "good", "inputSchema": {"type": "object"}}
BAD_SCHEMA = {"name": "b", "inputSchema": {"type": "object", "properties": {"x/y\n": 1}}}
TEXT = {"type": "text", "text": "hi"}

every = each("revision", REVISIONS)


def client_peer(revision: str) -> Connection:
    """Return the peer of a client after the handshake."""
    return ready(revision, "client", bindings(revision).Client)


def heard(connection: Connection, name: str, result: Any) -> Answered:
    """Return the event for the response to a request."""
    method = connection.dispatcher.revision.request(name)
    pending, _ = connection.request(method, None if method.params is None else method.params.model_construct())
    return only(Answered, feed(connection, answer(pending.id, result)))


def result(revision: str, **members: Any) -> dict[str, Any]:
    """Return a result in wire form."""
    stateless = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if revision == STATELESS else {}
    return {**stateless, **members}


@every
def test_one_invalid_item_does_not_fail_the_whole_list(revision: str) -> None:
    connection = client_peer(revision)
    tools = [BAD_SCHEMA, GOOD, {"inputSchema": {"type": "object"}}, {**GOOD, "description": 3}, 7, GOOD]
    event = heard(connection, "tools/list", result(revision, tools=tools, nextCursor="2"))
    assert event.error is None
    found = {(one.method, one.pointer) for one in connection.invalid_items}
    expected = {"/tools/0/inputSchema/properties/x~1y\\n", "/tools/2/name", "/tools/3/description", "/tools/4"}
    if revision == STATELESS:
        expected.discard("/tools/0/inputSchema/properties/x~1y\\n")  # this revision allows any schema here
    assert found == {("tools/list", pointer) for pointer in expected}
    assert (len(event.result.tools), event.result.next_cursor) == (6 - len(expected), "2")
    known = dict(connection.invalid_items)
    heard(connection, "tools/list", result(revision, tools=tools))
    assert connection.invalid_items == known, "each is reported once"


@every
@each(
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
def test_an_invalid_item_is_dropped_from_each_kind_of_list(
    revision: str, method: str, member: str, good: Any, bad: Any
) -> None:
    connection = client_peer(revision)
    event = heard(connection, method, result(revision, **{member: [good, bad]}))
    assert event.error is None
    assert json.loads(event.result.model_dump_json())[member] == [good]
    (one,) = connection.invalid_items
    assert one.method == method
    assert one.pointer.startswith(f"/{member}/1")
    assert one.problem
    assert "\n" not in str(one)


@every
@each("value", [math.nan, -math.inf, json.loads("[" * 300 + "]" * 300)])
def test_an_item_with_values_that_json_lacks_is_dropped(revision: str, value: Any) -> None:
    connection = client_peer(revision)
    event = heard(connection, "tools/list", result(revision, tools=[{**GOOD, "_meta": {"x": value}}, GOOD]))
    assert event.error is None
    assert [tool.model_dump() for tool in event.result.tools] == [GOOD]
    assert [one.pointer for one in connection.invalid_items] == ["/tools/0"]
    assert heard(connection, "tools/list", result(revision, tools=[GOOD], _meta={"x": value})).error is not None


@every
def test_a_result_with_only_structured_content_is_accepted(revision: str) -> None:
    connection = client_peer(revision)
    event = heard(connection, "tools/call", result(revision, structuredContent={"a": 1}))
    assert event.error is None
    assert (event.result.content, event.result.model_dump()["structuredContent"]) == ([], {"a": 1})
    assert [one.pointer for one in connection.invalid_items] == ["/content"]


@every
def test_a_result_without_a_valid_list_is_an_error(revision: str) -> None:
    connection = client_peer(revision)
    wires: list[dict[str, Any]] = [{}, {"tools": {}}, {"tools": [{}], "nextCursor": 3}]
    for wire in wires:
        assert isinstance(heard(connection, "tools/list", result(revision, **wire)).error, ProtocolError)
    assert isinstance(heard(connection, "tools/call", result(revision)).error, ProtocolError)
    assert not connection.invalid_items, "a result that is refused as a whole is not reported in parts"


def test_a_negative_ttl_is_read_as_zero() -> None:
    connection = client_peer(STATELESS)
    for value in (-1, -5.0):
        event = heard(connection, "tools/list", result(STATELESS, tools=[GOOD]) | {"ttlMs": value})
        assert event.error is None
        assert (event.result.ttl_ms, len(event.result.tools)) == (0, 1)
    assert not connection.invalid_items
    assert heard(connection, "tools/list", result(STATELESS, tools=[]) | {"ttlMs": "-1"}).error is not None


def test_a_server_does_not_drop_invalid_items() -> None:
    connection = ready("2025-11-25", "server", bindings("2025-11-25").Server)
    assert heard(connection, "roots/list", {"roots": [{"uri": "file:///a"}, {}]}).error is not None
    assert heard(connection, "roots/list", {"roots": [{"uri": "file:///a"}]}).error is None


def test_the_number_of_recorded_invalid_items_is_limited() -> None:
    connection = client_peer("2025-11-25")
    event = heard(connection, "tools/list", {"tools": [{"name": n} for n in range(1500)] + [GOOD]})
    assert ([tool.name for tool in event.result.tools], len(connection.invalid_items)) == (["good"], 1000)


def test_messages_that_are_taken_back_may_come_again() -> None:
    connection = server()
    for _ in range(2):
        (asked,) = feed(connection, initialize(LATEST))
        assert isinstance(asked, Requested)
        connection.take_back([asked])
    connection = ready(LATEST)
    pending, _ = connection.request(oracle(LATEST).methods["ping"], None)
    answered = {"jsonrpc": "2.0", "id": pending.id, "result": {}}
    for _ in range(2):
        events = [*feed(connection, request(1, "ping")), *feed(connection, answered)]
        assert [type(one) for one in events] == [Requested, Answered]
        connection.take_back(events)


def test_a_confirmation_that_is_taken_back_leaves_the_server_unconfirmed() -> None:
    connection = server()
    asked = only(Requested, feed(connection, initialize(LATEST)))
    connection.negotiated()
    connection.respond(asked.id, {})
    connection.take_back(feed(connection, INITIALIZED))
    assert connection.state is State.NEGOTIATED
    assert [type(one) for one in feed(connection, request(1, "tools/list"))] == [Rejected]
    assert [type(one) for one in feed(connection, INITIALIZED)] == [Notified]
    assert [type(one) for one in feed(connection, request(2, "tools/list"))] == [Requested]


def test_a_key_of_somebody_else_names_no_revision() -> None:
    both = server(LATEST, STATELESS)
    introduce(both, LATEST)
    for key in ("com.example/protocolVersion", "protocolVersion"):
        asked = only(Requested, feed(both, request(key, "tools/list", {"_meta": {key: STATELESS}})))
        assert asked.dispatcher.revision.name == LATEST
