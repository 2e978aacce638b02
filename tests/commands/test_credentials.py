"""Credentials on the command line: `--header`, `--bearer-env`, and servers that require a static token or a login."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from mcp_bindgen.host import Host, TokenNeeded
from mcp_bindgen.v2025_11_25 import Client
from tests.harness.commands import COMMAND, ROOT, answered, complaint, execute, inside
from tests.harness.forks import PYTHON
from tests.harness.processes import free_port

KEY = "0123456789abcdef0123"
CONTRACT = ROOT / "tests" / "runtime" / "contract" / "weather" / "contract.json"
WHOAMI = ("tools/call", "whoami")


@contextmanager
def running(example: str) -> Iterator[tuple[str, list[str]]]:
    """Run an example; yield its URL and the lines that it printed at its start."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    command = [PYTHON, str(ROOT / "examples" / example), "--http", f"127.0.0.1:{port}"]
    environment = {"RESOURCE": url, "API_KEY": KEY}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stderr is not None
        try:
            lines = [server.stderr.readline()]
            while "listening" not in lines[-1]:
                assert lines[-1], lines
                lines.append(server.stderr.readline())
            yield url, lines
        finally:
            server.terminate()


@pytest.mark.full
def test_an_api_key_is_sent_and_a_missing_key_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", KEY)
    monkeypatch.setenv("WRONG", f"{KEY}0")
    with running("api_key_server.py") as (url, _):
        for credentials in (("--bearer-env", "KEY"), ("--header", f"X-API-Key={KEY}")):
            assert answered("call", url, *WHOAMI, *credentials) == "alice\n"
            words = f"mcp-bindgen call {' '.join(credentials)} {url} tools/call who"
            done = execute(COMMAND, COMP_WORDS=words, COMP_CWORD="6", _MCP_BINDGEN_COMPLETE="complete_bash")
            assert done.stdout.split() == ["whoami"], credentials
        assert '"whoami"' in inside("contract", "export", url, "--bearer-env", "KEY").stdout
        module = tmp_path / "keyed.py"
        done = inside("client", "--from", url, "--out", str(module), "--header", f"X-API-Key={KEY}")
        assert "--header X-API-Key=..." in module.read_text("utf-8"), done.stderr
        assert KEY not in module.read_text("utf-8")
        for command in (("call", url), ("login", url, "--no-browser")):
            said = complaint(*command)
            assert f"{url} wants a token and names no authorization server; pass an API key" in said
            assert "--bearer-env KEY" in said
        said = complaint("call", url, "--bearer-env", "WRONG")
        assert "401 Unauthorized, which refuses these credentials: the token is unknown here" in said

        async def failure() -> Exception:
            async with Host({"keyed": {"url": url}}, Client) as host:
                return host.failures["keyed"]

        assert isinstance(anyio.run(failure), TokenNeeded)


@pytest.mark.full
def test_a_token_that_is_signed_with_a_static_key_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    with running("jwt_key_server.py") as (url, lines):
        monkeypatch.setenv("TOKEN", lines[0].strip())
        assert answered("call", url, *WHOAMI, "--bearer-env", "TOKEN") == "alice\n"


def test_unusable_credentials_give_a_one_line_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for words, message in [
        (("http://x", "--header", "A"), "--header A is not NAME=VALUE; as in: --header X-API-Key=abc"),
        (("http://x", "--header", "A b=c"), "--header A b= is not NAME=VALUE"),
        (("http://x", "--header", "A=b\r\nC: d"), "--header A= is not NAME=VALUE"),
        (("http://x", "--bearer-env", "NOT_SET"), "the environment variable NOT_SET is not set; put the token"),
        (("http://x", "--bearer-env", "BLANK"), "the environment variable BLANK holds no token"),
        (("x", "--header", "A=b"), "--header and --bearer-env are for URLs; pass credentials to a program with --env"),
    ]:
        monkeypatch.setenv("BLANK", "a b")
        assert message in complaint("call", *words)


@pytest.mark.parametrize(
    "url",
    [
        "http://ann:s3cret@127.0.0.1:9/mcp?apiKey=s3cret",
        "http://ann:s3cret/s3cret@127.0.0.1:9/mcp",
        "http://ann:s3[cret@127.0.0.1:9/mcp",
    ],
)
def test_errors_of_a_url_with_credentials_do_not_show_them(url: str, tmp_path: Path) -> None:
    config = tmp_path / "one.json"
    config.write_text(json.dumps({"mcpServers": {"one": {"url": url}}}), "utf-8")
    for command in (("call",), ("contract", "export"), ("gateway",), ("lock", "update")):
        for server in (url, f"{config}#one"):
            said = complaint(*command, server)
            assert "cannot connect to" in said
            assert "s3" not in said, said


@pytest.mark.parametrize(
    "command",
    [
        ("contract", "diff", CONTRACT, CONTRACT),
        ("contract", "bump", CONTRACT, CONTRACT),
        ("contract", "lower", CONTRACT, "--for", "gemini"),
        ("mock", CONTRACT),
        ("client", "--from", CONTRACT, "--out", "client.py"),
        ("lock", "update", "two.json"),
        ("lock", "check", "two.json"),
    ],
)
def test_each_command_refuses_unusable_credentials_once(command: tuple[object, ...], tmp_path: Path) -> None:
    config = {"mcpServers": {name: {"url": f"http://127.0.0.1:9/{name}"} for name in ("one", "two")}}
    (tmp_path / "two.json").write_text(json.dumps(config), "utf-8")
    for words, message in [
        (("--header", "bad"), "--header bad is not NAME=VALUE"),
        (("--bearer-env", "NOT_SET"), "the environment variable NOT_SET is not set"),
    ]:
        assert message in complaint(*command, *words, cwd=tmp_path)
