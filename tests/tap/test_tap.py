"""`mcp-bindgen tap`: the same bytes on both sides, violations reported, secrets hidden, no delay of forwarding."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import Any

import anyio
import pytest

from mcp_bindgen.ir import build
from mcp_bindgen.ir.examples import example
from mcp_bindgen.ir.model import Ref
from mcp_bindgen.spec import Store
from mcp_bindgen.tap import Lines, Recorder, Trace, TracedMessage, recorder
from mcp_bindgen.tap.redaction import may_contain_secrets, redacted
from tests.harness.commands import COMMAND, PATIENCE, ROOT, complaint, inside
from tests.harness.effort import cases, each
from tests.harness.forks import INSTALLED, PYTHON
from tests.harness.taps import traced
from tests.interop.everything import EVERYTHING, FILESYSTEM
from tests.interop.processes import needed, node

ECHO = "import sys, shutil; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"

MESSAGES = (
    b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", '
    b'"capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}}\n'
)
INITIALIZED = b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'
CALL = b'{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "remember"}}\n'


def tap(*options: object, sent: bytes, server: Sequence[str] = (PYTHON, "-c", ECHO)) -> Any:
    return subprocess.run(
        [COMMAND, "tap", *map(str, options), "--", *server], input=sent, capture_output=True, timeout=PATIENCE
    )


# --- bytes ----------------------------------------------------------------------------------------------------


def test_every_byte_is_forwarded_as_it_came(tmp_path: Path) -> None:
    """This includes bytes that are no message, no UTF-8 or no line."""
    sent = MESSAGES + b"\xff\xfe{\r\n\r\n" + b"[" * 300_000 + b"\n" + bytes(range(256)) * 900 + b"no line break"
    done = tap("--out", tmp_path / "trace.jsonl", sent=sent)
    assert done.stdout == sent
    found = traced(tmp_path / "trace.jsonl")
    assert {one["sender"] for one in found} == {"client", "server"}
    assert (found[0]["revision"], found[0]["violations"]) == ("2025-11-25", [])
    assert (tmp_path / "trace.jsonl").stat().st_mode & 0o077 == 0
    assert done.returncode == 1


@pytest.mark.full
def test_a_trace_file_readable_by_other_users_is_replaced_by_a_private_file(tmp_path: Path) -> None:
    out = tmp_path / "trace.jsonl"
    out.write_text("old\n" * 1000)
    out.chmod(0o644)
    tap("--out", out, sent=MESSAGES)
    assert out.stat().st_mode & 0o077 == 0
    assert len(out.read_text("utf-8").splitlines()) == 2


def test_a_trace_is_written_to_a_pipe_that_is_read(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    assert b"cannot be written" in tap("--out", pipe, sent=MESSAGES).stderr, "without a reader, it does not wait"
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        tap("--out", link, sent=MESSAGES)
        assert os.read(reader, 2**16).count(b"\n") == 2
    finally:
        os.close(reader)


@pytest.mark.parametrize("target", ["kept.txt", "missing.txt"])
def test_a_trace_is_not_written_through_a_symbolic_link(target: str, tmp_path: Path) -> None:
    kept, out = tmp_path / "kept.txt", tmp_path / "trace.jsonl"
    kept.write_text("kept")
    kept.chmod(0o644)
    out.symlink_to(tmp_path / target)
    done = tap("--out", out, sent=MESSAGES)
    assert (done.returncode, kept.read_text(), kept.stat().st_mode & 0o777) == (2, "kept", 0o644)
    assert b"symbolic link" in done.stderr
    assert not (tmp_path / "missing.txt").exists()


STRANGE = {
    "deep": (b'{"a": ' + b"[" * 800 + b"]" * 800 + b"}", "nested deeper"),
    "deep secret": (b'{"token": ' + b"[" * 300 + b"]" * 300 + b"}", "nested deeper"),
    "lone surrogate": (b'{"a": "\\ud800"}', None),
    "no number": (b'{"a": NaN}', "NaN is no JSON value"),
    "large number": (b'{"a": 1e999}', "1e999 is too large for a number"),
}


@pytest.mark.full
@pytest.mark.parametrize("name", STRANGE)
def test_the_trace_continues_after_unusual_messages(name: str, tmp_path: Path) -> None:
    arguments, reason = STRANGE[name]
    call = CALL.replace(b'"name": "remember"', b'"name": "remember", "arguments": ' + arguments)
    sent = MESSAGES + call + INITIALIZED
    done = tap("--out", tmp_path / "trace.jsonl", sent=sent)
    assert done.stdout == sent
    found = traced(tmp_path / "trace.jsonl")
    ours = [one for one in found if one["sender"] == "client"]
    assert len(ours) == 3
    assert ours[2]["method"] == "notifications/initialized"
    assert reason is None or reason in ours[1]["violations"][0]["reason"]
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [b'["Bearer abcdef123456"]', b'[{"apiKey": "abcdef123456"}]'])
def test_reasons_of_violations_quote_no_secrets(arguments: bytes, tmp_path: Path) -> None:
    call = CALL.replace(b'"name": "remember"', b'"name": "remember", "arguments": ' + arguments)
    done = tap("--out", tmp_path / "trace.jsonl", sent=MESSAGES + call)
    assert b'is not of type "object"' in done.stderr
    assert b"abcdef123456" not in done.stderr
    assert "abcdef123456" not in (tmp_path / "trace.jsonl").read_text("utf-8")


@pytest.mark.full
def test_invalid_json_that_may_contain_secrets_is_not_shown(tmp_path: Path) -> None:
    tap("--out", tmp_path / "trace.jsonl", sent=MESSAGES + b'{"apiKey": "abcdef123456", "a": NaN}\n')
    assert "abcdef123456" not in (tmp_path / "trace.jsonl").read_text("utf-8")


def test_the_tap_exits_with_the_exit_code_of_the_server() -> None:
    assert tap(sent=b"", server=(PYTHON, "-c", "raise SystemExit(7)")).returncode == 7
    assert tap(sent=b"").returncode == 0


@pytest.mark.full
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is of Linux")
def test_a_full_disk_does_not_stop_forwarding() -> None:
    done = tap("--out", "/dev/full", sent=MESSAGES * 50)
    assert done.stdout == MESSAGES * 50
    assert b"the trace is incomplete: No space left on device" in done.stderr


def test_a_slow_disk_does_not_delay_forwarding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that exceed the queue are counted; the trace continues with the next whole line."""
    monkeypatch.setattr(recorder, "MAX_QUEUED_BYTES", 40)
    began, may_go_on, second = threading.Event(), threading.Event(), threading.Event()
    seen = list[TracedMessage]()

    def write(message: TracedMessage) -> None:
        seen.append(message)
        began.set()
        assert may_go_on.wait(PATIENCE)
        if message.method == "b":
            second.set()

    with Recorder(write) as made:
        lines = Lines(Trace(made.write), "client")
        made.record(lines, b'{"method": "a"}\n')
        assert began.wait(PATIENCE)
        made.record(lines, b'{"method": "b"}\n{"meth')
        made.record(lines, b'od": "lost", "params": {"x": "yyyyyyyyyyyyyyyyy"}}\n')
        may_go_on.set()
        assert second.wait(PATIENCE)
        made.record(lines, b'rest"}\n{"method": "c"}\n')
    assert [message.method for message in seen] == ["a", "b", "c"]
    assert made.lost_bytes == 51


def test_bad_input_is_reported_in_one_line(tmp_path: Path) -> None:
    for words, reason in (
        (["http://127.0.0.1:1/mcp"], "--listen is for servers at a URL"),
        (["--listen", "127.0.0.1:0", "cat"], "--listen is for servers at a URL"),
        (["--listen", "127.0.0.1:0", "ftp://127.0.0.1/mcp"], "ftp"),
        (["--", "/no/such/program"], "cannot start"),
        (["--out", tmp_path / "no" / "file", "cat"], "cannot be written"),
    ):
        assert reason in complaint("tap", *words)


@pytest.mark.full
def test_call_with_trace_prints_requests_and_results(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("from mcp_bindgen.app import App\napp = App('shop')\n", "utf-8")
    done = inside("call", tmp_path / "shop.py", "--trace", "--revision", "2025-11-25", code=0)
    assert re.findall(r"[><] \S+ #\d+( result)?", done.stderr) == ["", " result"]


# --- violations -----------------------------------------------------------------------------------------------

SEEDED: tuple[tuple[str, dict[str, Any], str, str], ...] = (
    ("tools/call", {"content": [{"type": "text"}]}, "/result/content/0", "required"),
    ("tools/call", {"content": [{"type": "text", "text": 1}]}, "/result/content/0/text", "type"),
    (
        "tools/list",
        {"tools": [{"name": "a", "inputSchema": {"type": "array"}}]},
        "/result/tools/0/inputSchema",
        "const",
    ),
    ("tools/list", {}, "/result", "required"),
    ("resources/read", {"contents": [{"uri": 1, "text": ""}]}, "/result/contents/0/uri", "type"),
    ("prompts/get", {"messages": [{"role": "robot", "content": {"type": "text", "text": ""}}]}, "/result/messages", ""),
)
PARAMS = {
    "tools/call": {"name": "a"},
    "tools/list": {},
    "resources/read": {"uri": "file:///a"},
    "prompts/get": {"name": "a"},
}


@each("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
@each(("method", "result", "pointer", "rule"), SEEDED)
def test_seeded_violations_are_found(revision: str, method: str, result: Any, pointer: str, rule: str) -> None:
    seen = list[TracedMessage]()
    trace = Trace(seen.append, revision)
    head = {"jsonrpc": "2.0", "id": "x"}
    trace.record("client", json.dumps({**head, "method": method, "params": PARAMS[method]}).encode())
    trace.record("server", json.dumps({**head, "result": result}).encode())
    asked, answered = seen
    assert asked.violations == ()
    (violation,) = answered.violations
    assert violation.pointer.startswith(pointer)
    assert rule in violation.rule
    assert answered.method == method
    assert answered.elapsed_ms is not None


def test_an_invalid_message_is_a_violation() -> None:
    half = b'{"jsonrpc": "2.0", "method": "notifications/initialized", "params": {"_meta": {"\\ud800": 1}}}'
    for text in [b"{", b"1", b"[]", b"{}", b'{"jsonrpc": "2.0", "id": 9, "result": {}}', b"\xff", half]:
        seen = list[TracedMessage]()
        Trace(seen.append, "2025-11-25").record("server", text)
        assert [len(message.violations) for message in seen] == [1]


@pytest.mark.full
def test_valid_messages_have_no_violation() -> None:
    """This covers an example of the request and the result of each method that is sent as a message."""
    for revision in list(Store().pins):
        protocol = build(Store().effective(revision))
        seen = list[TracedMessage]()
        trace = Trace(seen.append, revision)
        for number, method in enumerate(one for one in protocol.methods if one.carrier == "message"):
            head = {"jsonrpc": "2.0"} | ({"id": number} if method.kind == "request" else {})
            params = {} if method.params is None else {"params": example(protocol, method.params)}
            for sender in method.senders[:1]:
                trace.record(sender, json.dumps({**head, "method": method.name, **params}).encode())
                if isinstance(method.result, Ref) and method.name != "initialize":
                    answer = {**head, "result": example(protocol, method.result)}
                    trace.record("server" if sender == "client" else "client", json.dumps(answer).encode())
            trace.revision = revision
        assert len(seen) > 20
        assert [(message.method, message.violations) for message in seen if message.violations] == []


def test_long_ids_and_names_of_open_requests_are_not_kept() -> None:
    kept, long = list[int](), ""
    trace = Trace(lambda message: kept.append(message.bytes), "2025-11-25")
    trace.record("client", json.dumps({"jsonrpc": "2.0", "id": 0, "method": "load the validators"}).encode())
    tracemalloc.start()
    for number in range(1, 30):
        long = f"{number}" + "x" * 2**15
        trace.record("client", json.dumps({"jsonrpc": "2.0", "id": long, "method": long}).encode())
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(kept), used < 2**19) == (30, True)
    seen: list[TracedMessage] = []
    trace.write = seen.append
    trace.record("server", json.dumps({"jsonrpc": "2.0", "id": long, "result": {}}).encode())
    assert seen[0].elapsed_ms is not None, "the response finds its request"


# --- secrets --------------------------------------------------------------------------------------------------


def test_secrets_are_redacted_and_other_values_are_kept() -> None:
    secret, digits = "S3CRETS3CRET", "271828"
    message: dict[str, Any] = {
        "headers": {"Authorization": f"Bearer {secret}", "Cookie": secret, "X-API-Key": secret},
        "env": {"HOME": secret, "list": [secret]},
        "url": f"https://user:{secret}@example.com/?a=1&access_token={secret}#token={secret}",
        "text": f"send 'Authorization: Bearer {secret}'",
        "password": secret,
        f"https://user:{secret}@example.com": True,
        "token": [int(digits)],
        "passwd": float(digits),
    }
    names = ["mcp-session-id", "openai_api_key", "tavilyApiKey", "x-api-key", "client_secret", "aws_secret_access_key"]
    names += ["passphrase", "db_credentials", "session-jwt", "db_pwd"]
    message |= dict.fromkeys(names, secret)
    message["urls"] = [f"/mcp?{name}={secret}" for name in (*names, "session_id", "passwd", "auth", "X-Amz-Signature")]
    properties = {"token": {"type": "string"}, "env": {"type": "object"}}
    kept = {"progressToken": "p1", "properties": properties, "uri": "https://example.com/?page=2", "pwd": "/home"}
    assert not any(text in json.dumps(redacted(message)) for text in (secret, digits))
    for key, value in message.items():
        assert may_contain_secrets(json.dumps({key: value}).encode())
    assert may_contain_secrets(json.dumps({"password": secret}).replace("pass", "\\u0070ass").encode())
    assert "https://[redacted]@example.com/?a=1" in redacted(message)["url"]
    found = redacted(kept)
    assert {**found, "properties": properties} == kept
    assert found["properties"]["token"] == {"type": "string"}


SECRET = "hunter2hunter2"


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


IN_JSON = json.dumps({"password": SECRET, "list": [{"apiKey": SECRET}], "env": {"HOME": SECRET}, "kept": 1})


@each(
    "text",
    [
        IN_JSON,
        json.dumps([json.loads(IN_JSON)], indent=2),
        json.dumps({"body": json.dumps({"body": IN_JSON})}),
        f'{{"note": "Bearer {SECRET}", "note": "a repeated member"}}',
        f'Saved: {{"client_secret" : "{SECRET}", "kept": 1}}, done',
        f"{{'password': '{SECRET}'}}",
        json.dumps({"password": f'1"{SECRET}'}).join(["as ", ' {"kept": 1}']),
        "as " + json.dumps(json.dumps({"password": f'1"{SECRET}'})),
        f'cut off: {{"token": "{SECRET}',
        f"authorization: bearer {SECRET}",
        "authorization: basic aHVudGVyMmh1bnRlcjI=",
        "BASIC aHVudGVyMmh1bnRlcjI=",
        f"dpop\t{SECRET}",
        f"client_secret={SECRET}&code={SECRET}",
        f"code={SECRET}&grant_type=authorization_code",
        f"export PASSWORD={SECRET}",
        f"GET /?api-key={SECRET}",
        f"user: bob\npassword: {SECRET}\nkept: 1",
        f'kept = 1\npassword = "{SECRET}"',
        f"{{ apiKey: '{SECRET}', kept: 1 }}",
        f"Log in with password: {SECRET}",
        f"curl -H 'X-Api-Key: {SECRET}' -b 'Cookie: a={SECRET}; b={SECRET}' kept",
        f"AUTHORIZATION: token {SECRET}",
        f"export GITHUB_TOKEN='{SECRET}'",
        json.dumps(json.dumps(json.dumps({"password": SECRET})))[1:-1],
        json.dumps({"kept": [{"name": "Authorization", "value": SECRET}], "slack_bot_token": SECRET}),
        f'{{"password": "{SECRET}", "password": null}}',
        json.dumps({"token": [SECRET], "kept": 1}),
    ],
)
def test_secrets_in_texts_are_redacted(text: str) -> None:
    shown = redacted({"content": [{"type": "text", "text": text}]})["content"][0]["text"]
    assert SECRET not in shown
    assert "aHVudGVyMmh1bnRlcjI" not in shown
    assert ("kept" in shown) == ("kept" in text)
    assert redacted(shown) == shown, "as replays compare it"
    assert not is_json(text) or is_json(shown)
    assert may_contain_secrets(json.dumps(text).encode())


@each(
    "text",
    [
        ' {"a" : 1, "a": 2}',
        "Does basic arithmetic.",
        "code=5 is it",
        "code=5",
        '{"token": {"type": "a"}}',
        '{"secret": [{"type": "a"}]}',
        "Needs Basic Authentication or bearer tokens.",
        "Args:\n    token: The token of a user\n    password: str\n    api_key: string, optional",
        "const token: string = read_token(); token => 1",
        "print('Password:', value)",
        '{"next_page_token": "a1", "total_tokens": 5}',
    ],
)
def test_texts_without_secrets_are_kept(text: str) -> None:
    assert redacted(text) == text


@each(
    "message",
    [
        {"id": 1, "result": {"content": [{"type": "text", "text": IN_JSON}], "structuredContent": json.loads(IN_JSON)}},
        {"id": 1, "result": {"contents": [{"uri": "note://1", "text": IN_JSON}]}},
        {"id": 1, "error": {"code": -32000, "message": f"refused: {IN_JSON}", "data": {"body": IN_JSON}}},
        {"id": 1, "method": "tools/call", "params": {"name": "save", "arguments": {"body": IN_JSON}}},
        {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1, "message": IN_JSON}},
        {"method": "notifications/message", "params": {"level": "info", "data": f"sent {IN_JSON}"}},
        {"id": f"password={SECRET}", "method": f"call?token={SECRET}"},
    ],
)
def test_no_message_of_a_trace_has_a_secret_in_json_in_a_text(message: dict[str, Any]) -> None:
    seen: list[TracedMessage] = []
    for side in ("client", "server"):
        Trace(seen.append, "2025-11-25").record(side, json.dumps({"jsonrpc": "2.0", **message}).encode())
    assert SECRET not in json.dumps([one.document() for one in seen])


LONG = [
    '"token":',
    '\\"token\\":\\"',
    "\\",
    '{"token":{',
    "basic ",
    "a.",
    "a@",
    "://",
    "&a-",
    "?key",
    "Bearer ",
    "://a:b",
]


@pytest.mark.parametrize("part", cases(LONG, quick=["\\", "a@", "Bearer "]))
def test_the_time_to_redact_a_text_grows_with_its_length_only(part: str) -> None:
    begun = process_time()
    redacted(part * 100_000)
    assert process_time() - begun < 2


# --- official clients and foreign servers ---------------------------------------------------------------------

PYTHON_TIME = str(INSTALLED.with_name("mcp-server-time"))
FOREIGN = {
    "time": ([PYTHON_TIME], "get_current_time", {"timezone": "Europe/Oslo"}),
    "everything": ([node(), EVERYTHING, "stdio"], "echo", {"message": "hi"}),
    "filesystem": ([node(), FILESYSTEM, "FOLDER"], "list_allowed_directories", {}),
}


@pytest.mark.full
@pytest.mark.parametrize("name", FOREIGN)
def test_the_official_client_and_foreign_servers_see_the_same_bytes(name: str, tmp_path: Path) -> None:
    """Tees on both sides of the tap record all bytes."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    words, tool, arguments = FOREIGN[name]
    if words[0] == node():
        needed()
    assert shutil.which(words[0]) is not None, words[0]
    server = [str(tmp_path) if word == "FOLDER" else word for word in words]
    recorder_of = [PYTHON, str(ROOT / "tests" / "interop" / "tap.py")]
    near, far, out = (tmp_path / one for one in ("near", "far", "trace.jsonl"))
    command = [str(COMMAND), "tap", "--out", str(out), "--", *recorder_of, str(far), *server]

    async def talk() -> int:
        parameters = StdioServerParameters(command=recorder_of[0], args=[recorder_of[1], str(near), *command])
        async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
            await session.initialize()
            listed = await session.list_tools()
            await session.call_tool(tool, arguments)
            return len(listed.tools)

    assert anyio.run(talk) > 0
    sides = [
        [[line for line in path.read_bytes().splitlines() if line[:2] == mark] for mark in (b"> ", b"< ")]
        for path in (near, far)
    ]
    assert sides[0] == sides[1]
    found = traced(out)
    assert [one["violations"] for one in found if one["violations"]] == []
    assert {one["method"] for one in found} >= {"initialize", "tools/list", "tools/call"}
    assert len(found) == sum(map(len, sides[0]))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
def test_a_signal_ends_the_server_and_then_the_tap() -> None:
    """The signal comes after the server has announced its start."""
    code = "import time; print('runs', flush=True); time.sleep(600)"
    with subprocess.Popen(
        [COMMAND, "tap", "--", PYTHON, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"runs\n"
        process.terminate()
        assert process.wait(PATIENCE) == 143
