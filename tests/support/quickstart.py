"""A newcomer's path, as README.md shows it: from nothing to the first answer of a tool of one's own, timed.

    python -m tests.support.quickstart

The commands of the README run in an empty folder, with an empty virtual environment; only the package is ours instead
of that of the index. They have to print what the README shows, where a line `...` stands for any lines.
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

ROOT = Path(__file__).parents[2]
SECONDS = 120.0
"""How long all of it may take."""
COMMANDS = 3
"""How many commands it may take."""

PACKAGE = re.compile(r"\bmcp-bindgen(\[[\w,]+\])")
_ANYTHING = "..."


@dataclass(frozen=True)
class Step:
    """A command, and what it prints.

    Attributes:
        command: The command, for a shell.
        shown: The lines that it prints, according to the README.
    """

    command: str
    shown: tuple[str, ...]

    @property
    def installs(self) -> bool:
        """Whether the command is the installer's."""
        return self.command.startswith("pip install")


@dataclass(frozen=True)
class Taken:
    """A step that was taken.

    Attributes:
        step: The step.
        printed: The lines that it printed.
        seconds: How long it took.
    """

    step: Step
    printed: tuple[str, ...]
    seconds: float

    @property
    def as_shown(self) -> bool:
        """Whether it printed what the README shows."""
        shown = "\n".join("(?s:.*)" if line.strip() == _ANYTHING else re.escape(line) for line in self.step.shown)
        return re.fullmatch(shown, "\n".join(self.printed)) is not None


def steps(readme: str) -> list[Step]:
    """The commands of the indented block of a README that begins with the installation, and what follows each."""
    blocks = re.findall(r"(?:^    .*\n|^[ ]*\n(?=    ))+", readme, re.MULTILINE)
    (block,) = [block for block in blocks if block.lstrip("\n").startswith("    $ pip install")]
    lines = [line.removeprefix("    ") for line in block.splitlines()]
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    return [
        Step(lines[start].removeprefix("$ "), _trimmed(lines[start + 1 : end]))
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)
    ]


def first_program(readme: str) -> tuple[Step, str]:
    """The first program of a README, and the command for what it needs, which stands above it."""
    block = next(re.finditer(r"(?:^    .*\n|^[ ]*\n(?=    ))+", readme, re.MULTILINE))
    (command,) = re.findall(r"`(pip install [^`]+)`", readme[: block.start()])
    return Step(command, ()), "".join(line.removeprefix("    ") + "\n" for line in block[0].strip("\n").splitlines())


def _trimmed(lines: Sequence[str]) -> tuple[str, ...]:
    """Lines without the empty ones around them."""
    return tuple("\n".join(lines).strip("\n").splitlines())


def wheel(folder: Path, source: Path = ROOT) -> Path:
    """Builds a package, by default ours, without what it depends on."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


def take(chosen: Sequence[Step], package: Path, home: Path) -> list[Taken]:
    """Takes steps in an empty folder, in an environment of its own that is activated.

    Args:
        chosen: The steps.
        package: The file to install instead of the package of the index.
        home: An empty folder.
    """
    environment, folder = home / "venv", home / "newcomer"
    folder.mkdir()
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    foreign = ("PYTHON", "VIRTUAL_ENV", "COLUMNS", "NO_COLOR", "FORCE_COLOR", "COVERAGE", "PYTEST")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    variables |= {
        "PATH": f"{environment / 'bin'}{os.pathsep}{variables['PATH']}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",  # what pip says of itself depends on the day
        "PIP_NO_CACHE_DIR": "1",  # somebody new has none
    }
    return [_taken(step, package, folder, variables) for step in chosen]


def _taken(step: Step, package: Path, folder: Path, variables: dict[str, str]) -> Taken:
    command = step.command
    if step.installs:
        command, replaced = PACKAGE.subn(lambda found: f"mcp-bindgen{found[1]} @ {package.as_uri()}", command)
        assert replaced == 1, command
    began = time.perf_counter()
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if step.installs else subprocess.STDOUT,  # pip complains about its own settings there
        text=True,
        timeout=SECONDS,
    )
    seconds = time.perf_counter() - began
    assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr or ''}"
    return Taken(step, _trimmed(done.stdout.splitlines()), seconds)


def main() -> int:
    """Takes the steps of README.md and prints what they print and take; 1 if that is too much or something else."""
    chosen = steps((ROOT / "README.md").read_text("utf-8"))
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        taken = take(chosen, wheel(folder), folder)
    for each in taken:
        print(f"$ {each.step.command}", *each.printed, sep="\n")
        print(f"# {each.seconds:.1f} s" + ("" if each.as_shown else "; README.md shows something else"), end="\n\n")
    total = sum(each.seconds for each in taken)
    print(f"{len(taken)} commands, {total:.1f} s")
    return 0 if total < SECONDS and len(taken) <= COMMANDS and all(each.as_shown for each in taken) else 1


if __name__ == "__main__":
    sys.exit(main())
