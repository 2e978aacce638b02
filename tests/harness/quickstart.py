"""The path of a new user in README.md, timed: from nothing to the first response of the user's own tool.

    python -m tests.harness.quickstart

The commands run in an empty folder, with an empty virtual environment. They install a wheel in place of the
checkout. They must print the output that the README shows.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from .installation import wheel
from .pages import Command, blocks, commands

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
SECONDS = 120.0
"""Time limit in seconds for all commands together, on an idle machine."""
PATIENCE = 600.0
"""Time limit in seconds for each command, to detect hanging."""
COMMANDS = 3
"""Maximum number of commands."""

PACKAGE = re.compile(r"(?<=')\.(\[[\w,]+\])(?=')")


@dataclass(frozen=True)
class Taken:
    """An executed command.

    Attributes:
        command: The command.
        printed: Its output.
        seconds: Its duration.
    """

    command: Command
    printed: str
    seconds: float

    @property
    def as_shown(self) -> bool:
        """True if the command printed the output that the README shows."""
        return self.command.prints(self.printed)


def steps(readme: Path) -> list[Command]:
    """Return the commands in the block of a README that begins with the installation."""
    found = [list(commands(block)) for block in blocks(readme)]
    return next(one for one in found if one and one[0].is_installation)


def first_program(readme: Path) -> tuple[Command, str]:
    """Return the installation command above the first program of a README, and the program."""
    block = next(block for block in blocks(readme) if block.language == "python")
    (command,) = re.findall(r"`(pip install [^`]+)`", readme.read_text("utf-8"))
    return Command(command), block.text


def take(chosen: Sequence[Command], package: Path, home: Path) -> list[Taken]:
    """Run commands in an empty folder with an activated environment.

    Args:
        chosen: The commands.
        package: The file to install in place of the checkout.
        home: An empty folder.
    """
    environment, folder = home / "venv", home / "newcomer"
    folder.mkdir()
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    foreign = ("PYTHON", "VIRTUAL_ENV", "COLUMNS", "NO_COLOR", "FORCE_COLOR", "COVERAGE", "PYTEST")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    variables |= {
        "PATH": f"{environment / 'bin'}{os.pathsep}{variables['PATH']}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",  # the message about a new version of pip depends on the day
    }
    return [_taken(step, package, folder, variables) for step in chosen]


def _taken(step: Command, package: Path, folder: Path, variables: dict[str, str]) -> Taken:
    line = step.line
    if step.is_installation:
        line, replaced = PACKAGE.subn(lambda found: f"mcp-bindgen{found[1]} @ {package.as_uri()}", line)
        assert replaced == 1, line
    began = time.perf_counter()
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if step.is_installation else subprocess.STDOUT,  # pip prints warnings there
        text=True,
        timeout=PATIENCE,
    )
    seconds = time.perf_counter() - began
    assert done.returncode == 0, f"$ {line}\n{done.stdout}{done.stderr or ''}"
    return Taken(step, done.stdout.strip("\n"), seconds)


def main() -> int:
    """Run the commands of README.md and print outputs and durations; return 1 if one differs or takes too long."""
    os.environ["PIP_NO_CACHE_DIR"] = "1"  # a new user has no cache
    chosen = steps(README)
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        taken = take(chosen, wheel(folder, ROOT), folder)
    for each in taken:
        print(f"$ {each.command.line}", each.printed, sep="\n")
        print(f"# {each.seconds:.1f} s" + ("" if each.as_shown else "; README.md shows something else"), end="\n\n")
    total = sum(each.seconds for each in taken)
    print(f"{len(taken)} commands, {total:.1f} s")
    return 0 if total < SECONDS and len(taken) <= COMMANDS and all(each.as_shown for each in taken) else 1


if __name__ == "__main__":
    sys.exit(main())
