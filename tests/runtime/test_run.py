"""`run`: its options, on the command line and as arguments, their errors, and what it serves.

The tests of a transport are in its own folder. Those of options that other distributions add are in
`test_entry_points.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mcp_bindgen import v2025_11_25
from mcp_bindgen.http.transport import open_store, setting
from mcp_bindgen.runtime import run
from mcp_bindgen.v2025_11_25 import types as mcp
from tests.harness.checked_connections import initialize, request
from tests.harness.cluster import HEADERS
from tests.harness.commands import ROOT, execute, inside
from tests.harness.effort import each
from tests.harness.forks import PYTHON
from tests.harness.http_wires import BOTH, LATEST
from tests.harness.processes import free_port, process
from tests.harness.redis_server import RedisServer

NAME = "mcp.example.com"
PROGRAM = """
from mcp_bindgen.runtime import run
from mcp_bindgen.v2025_11_25 import Server, types

class Named(Server):
    info = types.Implementation(name="named", version="1")

run(Named())
"""


class Named(v2025_11_25.Server):
    """Server with a name."""

    info = mcp.Implementation(name="named", version="1")


# --- options and addresses that cannot be used ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--http", "127.0.0.1:0", "--allowed-host", "https://a"], "not a host: 'https://a'"),
        (["--sse", "127.0.0.1:0", "--allowed-origin", "a b"], "not a host: 'a b'"),
        (["--allowed-host", NAME], "--allowed-host is for --http and --sse"),
        (["--log-format", "xml"], "invalid choice: 'xml'"),
    ],
)
def test_an_invalid_option_is_reported_in_one_line(
    words: list[str], problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["named", *words])
    with pytest.raises(SystemExit, match="2"):
        run(Named())
    assert problem in capsys.readouterr().err.splitlines()[-1]


def test_an_unknown_keyword_is_an_error() -> None:
    options: Any = {"nothing": 1}
    with pytest.raises(TypeError, match=r"run\(\) got an unexpected keyword argument 'nothing'"):
        run(Named(), **options)


@pytest.mark.parametrize("way", ["--http", "--sse"])
def test_a_port_in_use_is_reported_in_one_line(
    way: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setattr(sys, "argv", ["named", way, address])
        with pytest.raises(SystemExit, match="2"):
            run(Named())
    reason = "address already in use; choose another port or address"
    assert capsys.readouterr().err.endswith(f": error: cannot listen on {address}: {reason}\n")


# --- `--allowed-host`, `--allowed-origin` ---------------------------------------------------------------------


def test_a_server_behind_a_proxy_accepts_its_public_name(tmp_path: Path) -> None:
    port = free_port()
    command = [PYTHON, "-c", PROGRAM, "--http", f"127.0.0.1:{port}", "--allowed-host", NAME]
    with (
        process(command, port, tmp_path / "server.log") as server,
        httpx2.Client(headers={"accept": BOTH}, base_url=f"http://127.0.0.1:{port}", timeout=20) as http,
    ):
        page = {"host": NAME, "origin": f"https://{NAME}"}
        for headers, expected in ((page, 200), ({"host": f"{NAME}:8443"}, 200), ({"host": "wiki.example"}, 421)):
            answer = http.post("/mcp", json=initialize("2025-11-25"), headers=headers)
            assert answer.status_code == expected, answer.text
        server.terminate()
        assert server.wait(10) == 0
    log = (tmp_path / "server.log").read_text("utf-8")
    assert "the host 'wiki.example' is not allowed" in log
    assert NAME not in log


@pytest.mark.full
def test_a_server_on_a_public_address_logs_how_to_allow_hosts() -> None:
    command = [sys.executable, "-c", PROGRAM, "--http", "0.0.0.0:0"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        assert "listening on" in server.stderr.readline()
        assert "--allowed-host" in server.stderr.readline()
        server.terminate()
        assert server.wait(10) == 0


# --- `--no-sessions`, `--store` -------------------------------------------------------------------------------


@pytest.mark.full
async def test_the_command_line_serves_without_sessions_and_with_probes() -> None:
    port = free_port()
    command = [sys.executable, "-c", PROGRAM, "--http", f"127.0.0.1:{port}", "--no-sessions"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        assert b"listening" in await asyncio.to_thread(process.stderr.readline)
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            assert (await client.get("/readyz", headers={"host": "10.20.30.40:8000"})).text == "ok\n"
            assert (await client.get("/sse")).status_code == 404
            headers = {"accept": "application/json, text/event-stream"}
            begun = await client.post("/mcp", json=initialize(LATEST), headers=headers)
            assert (begun.status_code, "mcp-session-id" in begun.headers) == (200, False)
    finally:
        process.send_signal(signal.SIGTERM)
        process.stderr.close()
        await asyncio.to_thread(process.wait, 10)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["redis", "sqlite"])
def test_the_store_option_restores_sessions_after_a_restart(redis: RedisServer, tmp_path: Path, kind: str) -> None:
    where = redis.url if kind == "redis" else str(tmp_path / "sessions.db")
    session: str | None = None
    for turn in range(2):  # the second process restores the session
        port = free_port()
        command = [sys.executable, "-c", PROGRAM, "--http", f"127.0.0.1:{port}", "--store", where]
        with process(command, port, tmp_path / f"{turn}.log"), httpx2.Client(timeout=20) as client:
            url = f"http://127.0.0.1:{port}/mcp"
            if session is None:
                session = client.post(url, headers=HEADERS, json=initialize(LATEST)).headers["mcp-session-id"]
            response = client.post(url, headers={**HEADERS, "mcp-session-id": session}, json=request(1, "ping"))
            assert response.status_code == 200, response.text


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--store", "x.db"], "--store is for --http"),
        (["--http", "127.0.0.1:0", "--store", "ftp://x"], "redis:"),
        (["--http", "127.0.0.1:0", "--store", "/no/such/folder/x.db"], "/no/such/folder/x.db"),
    ],
)
def test_an_unusable_store_is_reported_in_one_line(
    options: list[str], reason: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["server.py", *options])
    with pytest.raises(SystemExit) as ended:
        run(Named())
    assert ended.value.code == 2
    assert reason in capsys.readouterr().err.splitlines()[-1]


def test_a_store_url_comes_from_file_or_environment_and_errors_hide_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "url"
    secret.write_text("redis://:pa:ss@127.0.0.1:1:x\n", "utf-8")
    assert setting("MCP_STORE") is None
    monkeypatch.setenv("MCP_STORE_FILE", str(secret))
    found = setting("MCP_STORE")
    assert found == "redis://:pa:ss@127.0.0.1:1:x"
    with pytest.raises(ValueError, match="malformed") as caught:
        open_store(found)
    assert "pa" not in str(caught.value)
    monkeypatch.setenv("MCP_STORE", "events.db")
    assert setting("MCP_STORE") == "events.db"
    monkeypatch.delenv("MCP_STORE")
    monkeypatch.setenv("MCP_STORE_FILE", str(tmp_path / "missing"))
    with pytest.raises(ValueError, match="MCP_STORE_FILE"):
        setting("MCP_STORE")
    secret.write_text("\n", "utf-8")
    monkeypatch.setenv("MCP_STORE_FILE", str(secret))
    with pytest.raises(ValueError, match="is empty"):
        setting("MCP_STORE")


@pytest.mark.parametrize("where", ["redis:/:pw@host", "user:pw@host:6379", ":pw@host:6379"])
def test_a_malformed_store_url_is_refused_and_not_taken_as_a_file(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="malformed") as caught:
        open_store(where)
    assert "pw" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("where", "is_told"), [("redis://:pw@127.0.0.1:1", True), ("redis://127.0.0.1:1", False)])
def test_a_password_in_the_arguments_logs_a_warning_without_it(
    where: str, is_told: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "argv", ["server", "--http", "no address", "--store", where])
    with pytest.raises(SystemExit, match="2"):
        run(Named())
    assert ("MCP_STORE" in caplog.text) == is_told
    assert "pw" not in caplog.text


# --- `--log-format` -------------------------------------------------------------------------------------------


@pytest.mark.full
@each("way", [["--log-format", "json"], []])
async def test_each_line_of_an_example_is_json(way: list[str]) -> None:
    """Run an example with the option or the environment variable, call it, and parse each log line."""
    command = [sys.executable, ROOT / "examples" / "weather_server.py", "--http", "127.0.0.1:0", *way]
    variables = {} if way else {"MCP_LOG_FORMAT": "json"}
    with subprocess.Popen(
        list(map(str, command)), stderr=subprocess.PIPE, text=True, env=os.environ | variables
    ) as server:
        assert server.stderr is not None
        url = json.loads(server.stderr.readline())["message"].removeprefix("listening on ")

        async with v2025_11_25.Client.connect(url) as client:
            await client.call_tool("forecast", {"city": "Oslo"})
        server.send_signal(signal.SIGTERM)
        rest = [json.loads(line) for line in server.stderr.read().splitlines()]
        assert server.wait(10) == 0
    (called,) = [one for one in rest if one.get("tool") == "forecast"]
    assert (
        called.items() >= {"method": "tools/call", "status": 200, "remote": "127.0.0.1", "http_method": "POST"}.items()
    )
    assert {one["logger"] for one in rest} == {"mcp_bindgen.requests"}


# --- `--log-level` --------------------------------------------------------------------------------------------

LOGGING = """
import json, logging, os
from contextlib import asynccontextmanager
from mcp_bindgen.runtime import run
from mcp_bindgen.v2025_11_25 import Server

class Loud(Server):
    @asynccontextmanager
    async def lifespan(self):
        for name in ("mine", "mcp_bindgen", "httpx"):
            for level in ("debug", "info", "warning", "error"):
                getattr(logging.getLogger(name), level)("written")
        yield

run(Loud(), **json.loads(os.environ["RUN_OPTIONS"]))
"""


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "options", "variable", "lowest"),
    [
        ([], {}, "", ("info", "warning", "warning")),
        ([], {}, "DEBUG", ("debug", "debug", "warning")),
        ([], {"log_level": "info"}, "debug", ("info", "info", "warning")),
        (["--log-level", "error"], {"log_level": "info"}, "debug", ("error", "error", "error")),
        (["--log-level", "warning", "--log-format", "json"], {}, "", ("warning", "warning", "warning")),
    ],
)
def test_the_log_level_comes_from_the_option_then_the_keyword_then_the_environment(
    words: list[str], options: dict[str, str], variable: str, lowest: tuple[str, ...]
) -> None:
    variables = {"RUN_OPTIONS": json.dumps(options), "MCP_LOG_LEVEL": variable}
    done = subprocess.run(
        [sys.executable, "-c", LOGGING, *words],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | variables,
        check=True,
        text=True,
    )
    lines = [line for line in done.stderr.splitlines() if "written" in line]
    if "json" in words:
        found = [(one["level"], one["logger"]) for one in map(json.loads, lines)]
    else:
        found = [(line.split()[0], line.split()[1].rstrip(":")) for line in lines]
    levels = ["DEBUG", "INFO", "WARNING", "ERROR"]
    first = zip(("mine", "mcp_bindgen", "httpx"), lowest, strict=True)
    assert found == [(level, name) for name, low in first for level in levels[levels.index(low.upper()) :]]


def test_an_unknown_log_level_in_the_environment_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MCP_LOG_LEVEL", "loud")
    monkeypatch.setattr(sys, "argv", ["named"])
    with pytest.raises(SystemExit, match="2"):
        run(Named())
    problem = "unknown log level 'loud'; use debug, info, warning, error"
    assert capsys.readouterr().err.splitlines()[-1].endswith(problem)


TALKATIVE = """
import logging, os
import httpx2
from mcp_bindgen.app import App, Context, run
from mcp_bindgen.auth import ResourceServer, StaticTokens

app, own = App("talkative"), os.environ["OWN_URL"]
secret = os.environ["UPSTREAM_TOKEN"]
for name in ("httpx2", "httpcore2", "uvicorn", "asyncio"):
    logging.getLogger(name).setLevel(logging.DEBUG)

@app.tool
async def fetch(ctx: Context) -> str:
    headers = {"authorization": f"Bearer {secret}", "x-api-key": secret[::-1]}
    logging.getLogger("authlib").warning("Token: %r, request headers %s", {"access_token": secret[::-1]}, headers)
    logging.getLogger("mine").debug("environment %s, origin %s", dict(os.environ), dict(ctx.origin.headers))
    async with httpx2.AsyncClient() as http:
        found = await http.get(f"{own}?access_token={secret[::-1]}", headers=headers)
    found.raise_for_status()
    return found.text

run(app, auth=ResourceServer(own, StaticTokens({"CLIENT_TOKEN": "ada"})), log_level="debug")
"""


@pytest.mark.full
@each("words", [[], ["--log-format", "json"]])
async def test_no_token_is_in_the_log_of_a_server_at_debug(words: list[str], tmp_path: Path) -> None:
    client_token, upstream_token = "client-token-0123456789", "upstream-token-9876543210"
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    command = [PYTHON, "-c", TALKATIVE.replace("CLIENT_TOKEN", client_token), "--http", f"127.0.0.1:{port}", *words]
    variables = {"OWN_URL": url, "UPSTREAM_TOKEN": upstream_token}
    with process(command, port, tmp_path / "server.log", **variables) as server:
        headers = {"authorization": f"Bearer {client_token}"}
        async with v2025_11_25.Client.connect(url, headers=headers) as client:
            assert (await client.call_tool("fetch")).is_error
        async with httpx2.AsyncClient() as http:
            responses = [
                await http.post(url, params={"access_token": client_token}),
                await http.post(url, headers={"authorization": "Basic abc"}),
            ]
            assert all(response.status_code in (400, 401) for response in responses)
        server.terminate()
        assert server.wait(10) == 0
    log = (tmp_path / "server.log").read_text("utf-8")
    for loud in ("httpx2", "httpcore2", "authlib", "mine", "HTTPStatusError", "mcp_bindgen.audit"):
        assert loud in log
    for secret in (client_token, upstream_token, upstream_token[::-1]):
        assert secret not in log


# --- modules as servers ---------------------------------------------------------------------------------------

TOOLS = "def double(number: int) -> int:\n    return 2 * number\n\n\n"
ITSELF = "import sys\nfrom mcp_bindgen.app import run\nrun(sys.modules[__name__])\n"
OTHER = "import plain\nfrom mcp_bindgen.app import run\nrun(plain)\n"
WITH_APP = "from mcp_bindgen.app import App\napp = App('sums')\n@app.tool\n"


@pytest.mark.full
@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"main.py": TOOLS + ITSELF}, "main"),
        ({"main.py": OTHER, "plain.py": TOOLS}, "plain"),
        ({"main.py": OTHER, "plain.py": WITH_APP + TOOLS}, "sums"),
    ],
)
def test_a_module_of_functions_is_served(tmp_path: Path, files: dict[str, str], name: str) -> None:
    for file, text in files.items():
        (tmp_path / file).write_text(text, "utf-8")
    server = shlex.join([sys.executable, str(tmp_path / "main.py")])
    here = ("--env", f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}")
    done = inside("call", server, "tools/call", "double", '{"number": 4}', "--json", *here)
    assert (done.returncode, json.loads(done.stdout)["structuredContent"]) == (0, {"result": 8}), done.stderr
    assert json.loads(inside("contract", "export", server, *here).stdout)["serverInfo"]["name"] == name


@pytest.mark.full
def test_serving_a_module_without_functions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("x = 1\n", "utf-8")
    (tmp_path / "main.py").write_text(OTHER, "utf-8")
    done = execute(sys.executable, tmp_path / "main.py", code=1)
    assert done.stderr.endswith("the module 'plain' has no public function; write one, or list it in __all__\n")
