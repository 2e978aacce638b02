"""`mcp-bindgen call` while a server works: progress, log messages, elicitation and timeouts."""

from __future__ import annotations

import os
import pty
import select
import time
from pathlib import Path

import pytest

from tests.harness.commands import COMMAND, ROOT, answered, complaint, execute, inside
from tests.harness.effort import cases
from tests.harness.forks import PYTHON

SERVER = """
import os, sys
import anyio
from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.runtime import run

SCHEMA = {
    "type": "object",
    "properties": {
        "seats": {"type": "integer", "title": "Seats [bold]"},
        "window": {"type": "boolean", "default": True},
        "days": {"type": "array", "items": {"type": "string", "enum": ["mon", "tue"]}},
    },
    "required": ["seats"],
}

def made(package):
    mcp = package.types

    class Asks(package.Server):
        info = mcp.Implementation(name="asks", version="1")

        def set_level(self, params, ctx):
            return mcp.EmptyResult()

        async def call_tool(self, params, ctx):
            if params.name == "hang":
                await anyio.sleep(600)
            await ctx.progress(1, total=3, message="half \\x1b[31mway")
            await ctx.log("info", "found [it] \\x1b[2J", "me")
            await anyio.sleep(0.3)
            form = mcp.ElicitRequestFormParamsRequestedSchema.model_validate(SCHEMA)
            question = mcp.ElicitRequestFormParams(message="How many?", requested_schema=form)
            answer = await ctx.ask_params("q", question)
            return mcp.CallToolResult(content=[mcp.TextContent(text=str(answer.model_dump()))])

    return Asks()

packages = [v2025_11_25] if os.environ.get("OLD") else [v2025_11_25, v2026_07_28]
run(*map(made, packages))
"""


@pytest.fixture(scope="module")
def asks(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the command of a server with a tool that sends progress and a log message, then asks the user."""
    script = tmp_path_factory.mktemp("asks") / "server.py"
    script.write_text(SERVER, "utf-8")
    return f"'{PYTHON}' '{script}'"


eras = pytest.mark.parametrize("era", cases(["OLD=1", "NEW=1"], quick=["NEW=1"]))


@pytest.mark.full
@eras
def test_command_line_answers_are_sent_for_elicitations(asks: str, era: str) -> None:
    words = ("call", asks, "tools/call", "book", "--env", era)
    answer = {"action": "accept", "content": {"seats": 2, "window": False, "days": ["mon", "tue"]}}
    options = ("--answer", "seats=2", "--answer", "window=no", "--answer", "days=mon, tue")
    assert answered(*words, *options) == f"{answer}\n"
    assert "'action': 'decline'" in inside(*words, "--answer", "decline").stdout
    assert "--answer VALUE answers" in inside(*words, code=1).stderr
    asked = "error: the server asks: How many?; answer with --answer seats=integer"
    assert complaint(*words, "--answer", "window=no", code=1) == asked
    refused = "error: --answer seats: 'many' is not a whole number"
    assert complaint(*words, "--answer", "seats=many", code=1) == refused


@pytest.mark.full
def test_an_elicitation_of_one_field_accepts_a_plain_value() -> None:
    notes = f"{PYTHON} {ROOT / 'examples' / 'notes.py'}"
    for answer, code, said in (
        ("yes", 0, '"result": false'),
        ("maybe", 1, "'maybe' is not yes or no"),
        ("other=1", 1, "error: the server asks: Delete 1?; answer with --answer answer=boolean"),
    ):
        done = inside("call", notes, "tools/call", "delete", '{"id": "1"}', "--answer", answer)
        assert (done.returncode, done.stdout.count("\n") > 0) == (code, code == 0)
        assert said in done.stdout + done.stderr


@pytest.mark.parametrize("answer", ["", "=1"])
def test_an_invalid_answer_option_is_refused_in_one_line(answer: str) -> None:
    assert "needs VALUE or NAME=VALUE" in complaint("call", "x", "--answer", answer)


def typed(command: list[str], *lines: tuple[str, str], **variables: str) -> tuple[str, int]:
    """Return the terminal output of a command, and its exit code; type each line after its prompt has appeared."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, {**os.environ, "TERM": "xterm", **variables})
    shown, left, deadline = "", list(lines), time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                shown += os.read(terminal, 65536).decode("utf-8", "replace")
            except OSError:
                break
        if left and left[0][0] in shown.rpartition("\n")[2]:
            os.write(terminal, left.pop(0)[1].encode())
    else:
        os.kill(pid, 9)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    return shown, code


@pytest.mark.full
@eras
def test_a_user_sees_progress_and_answers_on_the_terminal(asks: str, era: str) -> None:
    command = [str(COMMAND), "call", asks, "tools/call", "book", "--env", era]
    shown, code = typed(command, ("Seats", "two\n"), ("Seats", "3\n"), ("window", "\n"), ("days", "tue\n"))
    assert code == 0
    assert "1/3 half \\x1b[31mway" in shown
    assert "[info] me: found [it] \\x1b[2J" in shown
    assert "The server asks: How many?" in shown
    assert "'two' is not a whole number" in shown
    assert "{'action': 'accept', 'content': {'seats': 3, 'window': True, 'days': ['tue']}}" in shown


@pytest.mark.full
def test_ctrl_c_during_an_elicitation_ends_the_command(asks: str) -> None:
    command = [str(COMMAND), "call", asks, "tools/call", "book"]
    shown, code = typed(command, ("Seats", "\x03"), NO_COLOR="1")
    assert code == 130
    assert "\x1b[32m" not in shown


def test_a_connection_to_an_unresponsive_server_times_out() -> None:
    said = complaint("call", "sleep 600", "--timeout", "1")
    assert said == "error: cannot connect to 'sleep 600': no answer within 1 s; --timeout gives it longer"


def test_a_server_crash_is_reported_once(tmp_path: Path) -> None:
    """The program is started twice, and its last line on stderr has no line end."""
    script = tmp_path / "crash.py"
    script.write_text("import sys\nsys.stderr.write('boom')\nsys.exit(3)\n", "utf-8")
    assert complaint("call", f"'{PYTHON}' '{script}'").endswith(": boom")


@pytest.mark.full
def test_call_needs_typer_and_rich_but_no_generator(tmp_path: Path) -> None:
    libraries = "datamodel_code_generator docstring_parser jinja2 jsonschema_rs mypy ruamel tomlkit uritemplate"
    code = (
        f"import sys\nsys.modules.update(dict.fromkeys({libraries.split()}))\n"
        "sys.argv = ['mcp-bindgen', *sys.argv[1:]]\nfrom mcp_bindgen.cli import main\nmain()\n"
    )
    done = execute(PYTHON, "-c", code, "call", "--help", code=0)
    done = execute(PYTHON, "-c", code, "call", "false")
    assert done.stderr.startswith("error: cannot connect to 'false': "), done.stderr
    own = ("--out", tmp_path / "out", "--package", "own")  # up-to-date packages here would need no library
    done = execute(PYTHON, "-c", code, "generate", "2025-11-25", *own)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "which is not installed; run: pip install 'mcp-bindgen[generate]'" in done.stderr


def test_a_base_installation_names_the_extras_of_the_command_line() -> None:
    code = "import sys; sys.modules['typer'] = None; from mcp_bindgen.cli import main; main()"
    done = execute(PYTHON, "-c", code)
    fix = "run: pip install 'mcp-bindgen[generate]'; 'mcp-bindgen[cli]' is enough for call"
    assert (done.returncode, done.stderr) == (1, f"error: the command line is not installed; {fix}\n")
