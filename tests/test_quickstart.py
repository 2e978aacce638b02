"""What the README promises to somebody new: three commands, under two minutes, and just that output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.quickstart import COMMANDS, SECONDS, Step, Taken, first_program, steps, take, wheel

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> list[Taken]:
    """The newcomer's path, taken once; it needs the package index."""
    folder = tmp_path_factory.mktemp("newcomer")
    return take(steps(README.read_text("utf-8")), wheel(folder), folder)


@pytest.mark.full
def test_from_nothing_to_the_first_answer_it_takes_three_commands_and_less_than_two_minutes(path: list[Taken]) -> None:
    assert len(path) <= COMMANDS
    assert path[0].step.installs
    assert "tools/call" in path[-1].step.command
    assert path[-1].printed
    assert sum(taken.seconds for taken in path) < SECONDS


@pytest.mark.full
def test_the_commands_print_what_the_readme_shows(path: list[Taken]) -> None:
    for taken in path:
        assert taken.as_shown, "\n".join([f"$ {taken.step.command}", *taken.printed])


@pytest.mark.full
def test_the_first_program_needs_only_what_is_installed_above_it(tmp_path: Path) -> None:
    install, program = first_program(README.read_text("utf-8"))
    (tmp_path / "home").mkdir()
    (tmp_path / "server.py").write_text(program, "utf-8")
    greeting = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
    }
    (tmp_path / "greeting").write_text(json.dumps(greeting) + "\n", "utf-8")
    served = "timeout -s INT 10 python ../../server.py --http 127.0.0.1:0 2>&1 || true"
    commands = [Step("python ../../server.py < ../../greeting", ()), Step(served, ())]
    _, answer, http = take([install, *commands], wheel(tmp_path / "wheel"), tmp_path / "home")
    assert json.loads(answer.printed[0])["result"]["serverInfo"]["name"] == "weather"
    assert http.printed[0].startswith("listening on http://127.0.0.1:")


def test_the_first_program_stands_below_its_installation() -> None:
    install, program = first_program("# X\n\nRun `pip install 'mcp-bindgen[a]'`:\n\n    import a\n\n    a.b()\n\nEnd\n")
    assert install == Step("pip install 'mcp-bindgen[a]'", ())
    assert program == "import a\n\na.b()\n"


def test_steps_are_commands_with_the_lines_below_them() -> None:
    block = ["$ pip install 'mcp-bindgen[x]'", "$ one", "a", "", "  b", "$ two"]
    readme = (
        "Other:\n\n    import this\n\nNow:\n\n" + "".join(f"    {line}".rstrip() + "\n" for line in block) + "\nEnd\n"
    )
    assert steps(readme) == [
        Step("pip install 'mcp-bindgen[x]'", ()),
        Step("one", ("a", "", "  b")),
        Step("two", ()),
    ]


@pytest.mark.parametrize(
    ("shown", "printed", "fits"),
    [
        (("a", "b"), ("a", "b"), True),
        (("a", "b"), ("a", "c"), False),
        (("a",), ("a", "b"), False),
        (("a.",), ("ab",), False),
        (("a", "...", "d"), ("a", "b", "c", "d"), True),
        (("a", "...", "d"), ("a", "b", "c"), False),
        ((), ("a",), False),
    ],
)
def test_only_dots_stand_for_something_else(shown: tuple[str, ...], printed: tuple[str, ...], fits: bool) -> None:
    assert Taken(Step("x", shown), printed, 0).as_shown is fits
