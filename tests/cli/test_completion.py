"""Shell completion of commands, revisions, methods and tools."""

from __future__ import annotations

import pytest

from tests.harness.commands import COMMAND, ROOT, execute
from tests.harness.effort import cases
from tests.harness.forks import PYTHON

WEATHER = f"'{PYTHON} {ROOT / 'examples' / 'weather_server.py'}'"


@pytest.mark.parametrize(
    ("words", "first"),
    cases(
        [
            ("mcp-bindgen ins", "install"),
            ("mcp-bindgen methods 2026", "2026-07-28"),
            ("mcp-bindgen generate 2025-1", "2025-11-25"),
            ("mcp-bindgen upgrade p --to 2025-0", "2025-03-26"),
            ("mcp-bindgen call x tools/c", "tools/call"),
        ],
        quick=[("mcp-bindgen call x tools/c", "tools/call")],
    ),
)
def test_commands_revisions_and_methods_are_completed(words: str, first: str) -> None:
    count = str(len(words.split()) - 1)
    done = execute(COMMAND, COMP_WORDS=words, COMP_CWORD=count, _MCP_BINDGEN_COMPLETE="complete_bash")
    assert done.stdout.split()[0] == first


@pytest.mark.full
def test_tools_are_completed_and_an_unusable_server_gives_no_error() -> None:
    for server, offered in ((WEATHER, ["forecast"]), ("'no-such-program'", [])):
        words = f"mcp-bindgen call {server} tools/call fore"
        done = execute(COMMAND, COMP_WORDS=words, COMP_CWORD="4", _MCP_BINDGEN_COMPLETE="complete_bash")
        assert (done.stdout.split(), done.stderr) == (offered, "")
