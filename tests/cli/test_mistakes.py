"""Messages for typical mistakes with servers: same text in `docs/how-to/call-a-server.md` and in messages of hosts."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path

import pytest

from mcp_bindgen.host import Host, NotRouted
from mcp_bindgen.host.watch import last_words
from mcp_bindgen.runtime import ConnectionClosed, Options, RequestTimeout
from mcp_bindgen.v2025_11_25 import Client
from tests.harness.checked_connections import refused
from tests.harness.commands import ROOT, inside

LIBRARY = """import asyncio, os, traceback
from mcp_bindgen.app import App

app = App("library")

@app.tool
def end() -> None:
    try:
        raise ValueError("boom")
    except ValueError:
        traceback.print_exc()
        os._exit(3)

@app.tool
async def wait() -> None:
    await asyncio.sleep(60)

@app.tool
def find(words: str) -> str:
    return words

for number in range(150):
    app.add_tool(find, name=f"tool_{number}")
"""
MISTAKES = [
    ("libary.py", (), "libary.py: there is no such file; did you mean library.py?"),
    ("chatty.py", ("tools/call", "find", '{"words": "tea"}'), "hello"),
    ("library.py", ("tools/call", "end"), "the server ended with exit code 3"),
    ("broken.py", (), "no database"),
    ("library.py", ("tools/call", "fnd"), "did you mean 'find'?"),
    ("mcp.json#libary", (), "did you mean library?"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with servers that have typical mistakes."""
    monkeypatch.chdir(tmp_path)
    Path("library.py").write_text(LIBRARY, "utf-8")
    Path("chatty.py").write_text("print('hello')\nfrom library import app\n", "utf-8")
    Path("broken.py").write_text("raise RuntimeError('no database')\n", "utf-8")
    Path("mcp.json").write_text('{"mcpServers": {"library": {"command": "x"}}}', "utf-8")


def shown() -> list[str]:
    """Return the messages in the table of the page."""
    page = (ROOT / "docs" / "how-to" / "call-a-server.md").read_text("utf-8").partition("| mistake | message |")[2]
    return re.findall(r"^\| [^|-][^|]* \| `(.*)` \|$", page.partition("\n\n")[0], re.MULTILINE)


@pytest.mark.full
def test_the_command_line_prints_the_documented_error_messages() -> None:
    for server, words, part in MISTAKES:
        (message,) = (one for one in shown() if part in one)
        done = inside("call", server, *words)
        assert message in done.stderr
        assert done.stderr.count("\n") == 1
        assert (done.returncode == 0) == message.startswith("warning: ")


@pytest.mark.full
async def test_host_errors_name_the_server_the_tool_and_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    servers = {
        name: {"command": sys.executable, "args": ["-m", "mcp_bindgen.app", file]}
        for name, file in (("books", "library.py"), ("chatty", "chatty.py"))
    }
    async with Host(servers, Client) as host:
        assert "MCP server chatty: a line on stdout is no message; write it to stderr: hello" in caplog.text
        await host.remove("chatty")
        await refused(host.call_tool("fnd"), NotRouted, "no server offers a tool 'fnd'; did you mean find")
        await refused(host.call_tool("zzz"), NotRouted, r"'zzz'; there are: end, find, tool_0, \S+ \S+ and 148 more$")
        unknown = host.call_tool("zzz", server="books")
        assert (await refused(unknown, match=r"^server 'books', tool 'zzz': Unknown tool")).code == -32602
        for limited in (Options(timeout=0.5), Options(timeout=60, total_timeout=0.5), Options(None, 0.5)):
            host.clients["books"].options = limited
            slow = host.call_tool("wait")
            await refused(slow, RequestTimeout, r"^server 'books', tool 'wait': no answer within 0.5 s$")
        host.clients["books"].options = Options(timeout=60)
        reason = r"the server ended with exit code 3; its stderr ends: ValueError: boom \(library.py, line 9\)"
        with pytest.raises(ConnectionClosed, match=rf"^server 'books', tool 'end', after \d+\.\d s: {reason}$"):
            await host.call_tool("end")
        assert re.search(reason, str(host.failures["books"]))


NODE = """/srv/x.js:2
function go() { throw new Error("no key: set KEY"); }
                ^

Error: no key: set KEY
    at go (/srv/x.js:2:23)

Node.js v22.1.0
"""
NPM = """npm error code E404
npm error 404 Not Found - GET https://registry.example/zzz - Not found
npm error A complete log of this run can be found in: x.log
"""
PYTHON = """INFO starting
Traceback (most recent call last):
  File "/srv/a.py", line 1, in <module>
    import b
KeyError: 'first'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/a.py", line 3, in <module>
  File "/srv/b.py", line 7, in go
    raise app.Refused("second\\nmore")
app.Refused: second
more
"""
GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "/srv/a.py", line 3, in <module>
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/srv/c.py", line 5, in task
    |     raise OSError("no disk")
    | OSError: no disk
    +------------------------------------
"""


def test_the_error_message_is_taken_from_the_end_of_stderr() -> None:
    for stderr, words in [
        (NODE, "Error: no key: set KEY"),
        (NPM, "404 Not Found - GET https://registry.example/zzz - Not found"),
        (PYTHON, "app.Refused: second (b.py, line 7)"),
        (GROUP, "OSError: no disk (c.py, line 5)"),
        ("one\n\ntwo\nthree\nfour\x1b[2J\n", "two | three | four\\x1b[2J"),
        ("Traceback (most recent call last):\n", "Traceback (most recent call last):"),
        ("", ""),
    ]:
        assert last_words(stderr) == words
