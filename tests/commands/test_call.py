"""`mcp-bindgen call` against real servers: as a process of its own if the process matters, else in the test process."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from functools import partial
from pathlib import Path

import pytest

from mcp_bindgen.commands.call import print_offers, readable
from tests.harness import commands
from tests.harness.commands import ROOT, bindgen, inside, on_terminal
from tests.harness.forks import PYTHON

WEATHER = f"'{PYTHON}' '{ROOT / 'examples' / 'weather_server.py'}'"
ECHO = f"'{PYTHON}' '{ROOT / 'benchmarks' / 'echo_server.py'}'"

ODD = """
import os, sys
from mcp_bindgen.runtime import ProtocolError, run
from mcp_bindgen.v2025_11_25 import Server, types as mcp

print("odd words", file=sys.stderr)

class Odd(Server):
    async def list_tools(self, params, ctx):
        page = int(params.cursor or 0)
        schema = mcp.ToolInputSchema(properties={"x": {}, "y": {}}, required=["y"])
        tool = mcp.Tool(name=f"[/tool{page}]", description="two\\nlines \\x1b[31m[bold]", input_schema=schema)
        return mcp.ListToolsResult(tools=[tool], next_cursor=None if page else "1")

    async def call_tool(self, params, ctx):
        if params.name == "die":
            print("oh no", file=sys.stderr)
            os._exit(3)
        if params.name == "refuse":
            raise ProtocolError(-32000, "not today", {"why": "é"})
        if params.name == "red":
            return mcp.CallToolResult(content=[mcp.TextContent(text="\\x1b[31mred\\tand\\nmore")])
        known = {name: os.environ[name] for name in ("A", "B") if name in os.environ}
        text = mcp.TextContent(text=str(known).replace("'", '"'))
        return mcp.CallToolResult(content=[text], structured_content=known)

    async def list_resources(self, params, ctx):
        return mcp.ListResourcesResult(resources=[mcp.Resource(name="r", uri="test://r", mime_type="text/plain")])

    async def list_resource_templates(self, params, ctx):
        template = mcp.ResourceTemplate(name="t", title="T", uri_template="test://{id}")
        return mcp.ListResourceTemplatesResult(resource_templates=[template])

    async def list_prompts(self, params, ctx):
        arguments = [mcp.PromptArgument(name="a", required=True), mcp.PromptArgument(name="b")]
        return mcp.ListPromptsResult(prompts=[mcp.Prompt(name="p", arguments=arguments)])

    async def get_prompt(self, params, ctx):
        said = mcp.TextContent(text=f"{params.name} {params.arguments}")
        return mcp.GetPromptResult(messages=[mcp.PromptMessage(role="user", content=said)])

    async def complete(self, params, ctx):
        return mcp.CompleteResult(completion=mcp.CompleteResultCompletion(values=[params.argument.value + "!"]))

run(Odd())
"""


call = partial(inside, "call")
answered = partial(commands.answered, "call")
refused = partial(commands.complaint, "call")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the command of a server with unusual texts, such as markup and escape sequences."""
    script = tmp_path_factory.mktemp("odd") / "odd_server.py"
    script.write_text(ODD, "utf-8")
    return f"'{PYTHON}' '{script}'"


# --- listing --------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_entries_of_a_server_are_listed() -> None:
    assert answered(WEATHER) == answered(WEATHER, "--list")
    assert answered(WEATHER).splitlines() == [
        "KIND      NAME              TAKES        MEANING",
        "tool      forecast          city, days?  Tells the sky over a city, day by day.",
        "tool      await_sun         -            Answers as soon as the sun comes out, which may take an hour.",
        "prompt    pack              -            What to take along.",
        "resource  weather://cities  -            cities",
    ]


@pytest.mark.full
def test_all_pages_and_kinds_are_listed_on_plain_lines(odd: str) -> None:
    assert answered(odd).splitlines() == [
        "KIND      NAME         TAKES       MEANING",
        "tool      [/tool0]     x?, y       two lines \\u001b[31m[bold]",
        "tool      [/tool1]     x?, y       two lines \\u001b[31m[bold]",
        "prompt    p            a, b?       -",
        "resource  test://r     text/plain  r",
        "template  test://{id}  -           T",
    ]


@pytest.mark.full
def test_a_list_is_printed_as_json(odd: str) -> None:
    listed = json.loads(answered(odd, "--list", "--json"))
    assert list(listed) == ["tools", "prompts", "resources", "resourceTemplates"]
    assert [tool["name"] for tool in listed["tools"]] == ["[/tool0]", "[/tool1]"]
    assert listed["resourceTemplates"] == [{"name": "t", "title": "T", "uriTemplate": "test://{id}"}]
    assert list(json.loads(answered(ECHO, "--json"))) == ["tools"]


@pytest.mark.full
def test_a_single_page_reports_the_next_cursor(odd: str) -> None:
    done = call(odd, "tools/list")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2)
    assert done.stderr == 'there is more; go on with {"cursor": "1"}\n'
    assert "[/tool1]" in answered(odd, "tools/list", '{"cursor": "1"}')


@pytest.mark.full
def test_markup_and_escape_sequences_of_a_server_are_printed_as_text(odd: str) -> None:
    listed = re.sub(r"\x1b\[[01]m", "", on_terminal("call", odd, NO_COLOR="1"))  # our own header is bold
    assert "[/tool0]" in listed
    assert "two lines \\u001b[31m[bold]" in " ".join(listed.split())
    assert "\x1b" not in listed
    assert on_terminal("call", odd, "tools/call", "red", NO_COLOR="1") == "\\u001b[31mred\tand\nmore\n"
    assert answered(odd, "tools/call", "red") == "\\u001b[31mred\tand\nmore\n"  # --json is exact


# --- calling --------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_text_is_printed_as_text() -> None:
    assert answered(ECHO, "tools/call", "echo", '{"text": "hi\\nyou"}') == "hi\nyou\n"
    assert answered(WEATHER, "resources/read", "weather://cities") == "Bergen\nCairo\nOslo\n"
    assert answered(WEATHER, "prompts/get", "pack") == "user: Look at the forecast for Oslo. What do I pack?\n"


@pytest.mark.full
def test_structured_content_is_printed_as_json() -> None:
    text, _, structured = answered(WEATHER, "tools/call", "forecast", '{"city": "Oslo", "days": 2}').partition("\n")
    assert text == "Oslo: snow, clouds"
    assert json.loads(structured) == {"city": "Oslo", "skies": ["snow", "clouds"]}


@pytest.mark.full
def test_a_result_is_printed_as_json() -> None:
    wanted = ("tools/call", '{"name": "echo", "arguments": {"text": "é"}}', "--json")
    assert json.loads(answered(ECHO, *wanted)) == {"content": [{"type": "text", "text": "é"}]}


@pytest.mark.full
def test_command_line_arguments_become_params(odd: str) -> None:
    assert answered(odd, "prompts/get", "p", '{"a": "1"}') == "user: p {'a': '1'}\n"
    assert answered(odd, "prompts/get", '{"name": "q"}') == "user: q None\n"
    ref = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "x"}}
    stateful = ("--revision", "2025-11-25")
    completed = answered(odd, "completion/complete", json.dumps(ref), *stateful)
    assert json.loads(completed) == {"completion": {"values": ["x!"]}}
    assert answered(odd, "logging/setLevel", "info", *stateful) == answered(odd, "ping", *stateful) == "{}\n"


@pytest.mark.full
def test_environment_variables_are_passed_to_the_server(odd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A", "0")
    printed = answered(odd, "tools/call", "env", "--env", "A=1=2", "--env", "B=")
    assert json.loads(printed) == {"A": "1=2", "B": ""}  # printed once, although the result also has it as text


@pytest.mark.full
def test_the_revision_of_the_server_is_used() -> None:
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18"]:
        assert answered(f"{ECHO} {revision}", "tools/call", "echo", '{"text": "hi"}') == "hi\n"


@pytest.mark.full
def test_call_accepts_a_server_of_another_revision_than_requested() -> None:
    assert answered(f"{ECHO} 2025-06-18", "ping", "--revision", "2024-11-05") == "{}\n"
    assert "no request that a client of MCP 2024-11-05" in refused(f"{ECHO} 2024-11-05", "tasks/get", "1")


@pytest.mark.full
def test_a_server_is_called_by_url() -> None:
    command = [PYTHON, str(ROOT / "examples" / "weather_server.py"), "--sse", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            url = server.stderr.readline().split()[-1]
            assert answered(url, "resources/read", "weather://cities") == "Bergen\nCairo\nOslo\n"
        finally:
            server.terminate()


@pytest.mark.full
def test_stderr_of_the_server_is_hidden_unless_asked_for(odd: str) -> None:
    done = bindgen("call", odd, "ping")
    assert (done.returncode, done.stdout, done.stderr) == (0, "{}\n", "")
    done = bindgen("call", odd, "ping", "--verbose")
    assert (done.returncode, done.stdout, done.stderr) == (0, "{}\n", "odd words\n")


BAD = """
import json, sys
TOOLS = [
    {"name": "a", "inputSchema": {"type": "object"}},
    {"name": "b", "inputSchema": {"type": "object", "properties": {"x": 1}}},
]
INFO = {"capabilities": {"tools": {}}, "serverInfo": {"name": "bad", "version": "1"}}
KNOWN = {
    "initialize": {"protocolVersion": "2025-11-25", **INFO},
    "tools/list": {"tools": TOOLS},
    "tools/call": {"structuredContent": {"a": 1}},
}
for asked in map(json.loads, sys.stdin):
    if "id" in asked:
        known = KNOWN.get(asked["method"])
        body = {"error": {"code": -32601, "message": "no"}} if known is None else {"result": known}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **body}), flush=True)
"""


@pytest.mark.full
def test_invalid_entries_are_left_out_or_with_strict_an_error(tmp_path: Path) -> None:
    script = tmp_path / "bad_server.py"
    script.write_text(BAD, "utf-8")
    bad = f"'{PYTHON}' '{script}'"
    where = "tools/list: /tools/1/inputSchema/properties/x: Input should be an object"
    said = f"left out, because it is not valid: {where}\n"
    for wanted in ([], ["tools/list"]):
        done = call(bad, *wanted, "--json")
        assert (done.returncode, done.stderr) == (0, f"warning: {said}")
        assert [tool["name"] for tool in json.loads(done.stdout)["tools"]] == ["a"]
        done = call(bad, *wanted, "--strict")
        assert (done.returncode, done.stderr) == (1, f"error: {said}")
        assert "tool  a" in done.stdout
    done = call(bad, "tools/call", "a", "--strict")
    assert (done.returncode, json.loads(done.stdout)) == (1, {"a": 1})
    assert "tools/call: /content: Field required" in done.stderr
    assert call(ECHO, "--strict").returncode == 0


# --- server errors --------------------------------------------------------------------------------------------


@pytest.mark.full
def test_a_tool_error_ends_with_exit_code_1() -> None:
    words = (WEATHER, "tools/call", "forecast", '{"city": "Rome"}')
    done = call(*words)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "Input should be 'Bergen', 'Cairo' or 'Oslo'\n")
    assert json.loads(answered(*words, "--json", code=1))["isError"] is True


@pytest.mark.full
def test_a_request_error_is_printed_with_code_and_data(odd: str) -> None:
    done = call(odd, "tools/call", "refuse")
    said = 'error: not today (-32000)\n{"why": "é"}\n'
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


def test_a_request_that_the_server_does_not_support_fails(tmp_path: Path) -> None:
    assert "needs the capability 'prompts'" in refused(ECHO, "prompts/list", code=1)
    boasting = tmp_path / "boasting.py"
    boasting.write_text(
        "from mcp_bindgen.runtime import run\nfrom mcp_bindgen.v2025_11_25 import Server\n\nclass Boasting(Server):\n"
        '    def extra_capabilities(self):\n        return {"prompts": {}}\n\nrun(Boasting())\n',
        "utf-8",
    )
    assert "Method not found" in refused(f"'{PYTHON}' '{boasting}'", "prompts/get", '{"name": "x"}', code=1)


@pytest.mark.full
def test_a_slow_tool_ends_with_a_timeout_error() -> None:
    said = refused(WEATHER, "tools/call", "await_sun", "--timeout", 3, code=1)
    where = "server 'weather_server', tools/call await_sun"
    assert said == f"error: {where}: no answer within 3 s; --timeout gives it longer"


def test_a_server_crash_during_a_call_is_reported_with_its_stderr(odd: str) -> None:
    where = "server 'odd_server', tools/call die"
    reason = "the server ended with exit code 3; its stderr ends: odd words | oh no"
    assert refused(odd, "tools/call", "die", code=1) == f"error: {where}: {reason}"


def test_a_server_crash_at_startup_is_reported_with_its_stderr() -> None:
    for leftover in ["", "subprocess.Popen(['sleep', '600']); "]:
        program = f"import subprocess, sys; {leftover}print('no key', file=sys.stderr); sys.exit(3)"
        said = refused(f'"{PYTHON}" -c "{program}"', "tools/call", "x", "--timeout", 300)
        assert said.endswith(": the server ended with exit code 3; its stderr ends: no key")


def test_a_resource_without_a_description_is_explained_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    templates = [{"name": "any", "uriTemplate": "x:{y}"}]
    print_offers({"tools": [{"name": "t"}], "resources": [{"name": "r", "uri": "x:r"}], "resourceTemplates": templates})
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert lines == [["tool", "t", "-", "-"], ["resource", "x:r", "-", "r"], ["template", "x:{y}", "-", "any"]]


# --- bad input ------------------------------------------------------------------------------------------------


NOT_STARTED = "no-such-program cannot be started: No such file or directory"


UNUSABLE: list[tuple[tuple[str, ...], str]] = [
    (("no-such-program", "ping"), f"^error: cannot connect to 'no-such-program': {NOT_STARTED}$"),
    ((f"{PYTHON} no_such_file.py", "ping"), "no_such_file.py"),
    (("sh -c 'cat > /dev/null'", "ping", "--timeout", "0.3"), "cannot connect to .*: no answer within 0.3 s"),
    (("http://127.0.0.1:9/sse", "ping"), "cannot connect to 'http://127.0.0.1:9/sse'"),
    (("true", "ping"), r"cannot connect to 'true': the server ended with exit code 0; does it call run\(\)\?$"),
    (("", "ping"), "the command is empty"),
    (("it's", "ping"), "not a command: it's: No closing quotation"),
    (("x", "tools/cal"), "'tools/cal' is no request .*; did you mean tools/call"),
    (("x", "zzz/zzz"), "'zzz/zzz' is no request .*; see: mcp-bindgen methods 2026-07-28"),
    (("x", "find", "{}"), "'find' is no request .*; did you mean: tools/call find$"),
    (("x", "list it"), "'list it' is no request .*; did you mean: tools/call 'list it'$"),
    (("x", "initialize"), "'initialize' is no request that a client of MCP 2026-07-28 can make; see: "),
    (("x", "notifications/cancelled"), "'notifications/cancelled' is no request"),
    (("x", "sampling/createMessage"), "'sampling/createMessage' is no request"),
    (("x", "tools/call"), "params.name: Field required; see: mcp-bindgen show 2026-07-28 tools/call"),
    (("x", "tools/call", "echo", "{"), r"""not JSON: {: .*; as in: '{"name": "value"}'$"""),
    (("x", "tools/call", "echo", "a=b c"), r"""not JSON: a=b c: .*; as in: '{"a": "b c"}'$"""),
    (
        ("x", "tools/call", "echo", "a-b=it's", "n=2"),
        r"""is too much; put the JSON in quotes, as in: '{"a-b": "it'"'"'s", "n": 2}'$""",
    ),
    (("x", "tools/call", "echo", '{"a": NaN}'), "NaN is not JSON"),
    (("x", "tools/call", "echo", "[]"), r"not a JSON object: \[\]"),
    (("x", "tools/call", "echo", '{"text":', '"hi"}'), "is too much; put the JSON in quotes, as in: '"),
    (("x", "tools/call", "{}", "{}"), "'{}' is too much"),
    (("x", "tools/list", "echo"), "tools/list takes its params as a JSON object, not as 'echo'"),
    (("x", "logging/setLevel", "loud"), "params.level: Input should be 'debug'"),
    (("x", "ping", "--list"), "--list and ping exclude each other"),
    (("x", "ping", "--revision", "2025-11-52"), "did you mean 2025-11-25?"),
    (("x", "ping", "--revision", "2026-07-28"), "'ping' is no request that a client of MCP 2026-07-28 can make"),
    (("x", "ping", "--env", "A"), "--env A is not KEY=VALUE"),
    (("x", "ping", "--env", "=A"), "is not KEY=VALUE"),
    (("http://127.0.0.1:9/sse", "ping", "--env", "A=1"), "--env is for servers that are started here"),
]


def test_invalid_input_gives_a_one_line_error() -> None:
    for arguments, message in UNUSABLE:
        assert re.search(message, refused(*arguments))


@pytest.mark.parametrize(("code", "says"), [("def f(", "SyntaxError: "), ("raise SystemExit(3)", "SystemExit: 3")])
def test_own_bindings_that_cannot_be_imported_are_reported_in_one_line(
    code: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    name = f"broken_bindings_{len(code)}"
    (tmp_path / f"{name}.py").write_text(code)
    assert f"--package {name}: {says}" in refused("x", "jobs/get", "--package", name)


# --- display of results ---------------------------------------------------------------------------------------

BYTES = base64.b64encode(b"12345").decode()


def test_content_blocks_are_printed_by_type() -> None:
    for block, line in [
        ({"type": "text", "text": "hi"}, "hi"),
        ({"type": "image", "mimeType": "image/png", "data": BYTES}, "[image image/png, 5 bytes]"),
        ({"type": "audio", "mimeType": "audio/wav", "data": ""}, "[audio audio/wav, 0 bytes]"),
        ({"type": "resource", "resource": {"uri": "a:b", "text": "inside"}}, "inside"),
        ({"type": "resource", "resource": {"uri": "a:b", "blob": BYTES}}, "[a:b of unknown type, 5 bytes]"),
        ({"type": "resource_link", "uri": "a:b", "name": "x"}, "[link a:b]"),
        ({"type": "hologram"}, '{\n  "type": "hologram"\n}'),
    ]:
        assert readable({"content": [block]}) == line
        assert readable({"content": [block, block]}) == f"{line}\n{line}"
        assert readable({"messages": [{"role": "assistant", "content": block}]}) == f"assistant: {line}"


def test_resource_contents_are_printed() -> None:
    contents = [{"uri": "a:b", "text": "x"}, {"uri": "a:c", "mimeType": "image/png", "blob": BYTES}]
    assert readable({"contents": contents}) == "x\n[a:c image/png, 5 bytes]"
