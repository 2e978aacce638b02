"""Try whether the modules of a project can be imported, in a Python of its own."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_bindgen.spec import BadInput

from .copying import python_files

_FIX = "give the Python of the project with --python"
_SCRIPT = Path(__file__).with_name("importing.py")


@dataclass(frozen=True)
class Interpreter:
    """The Python that imports.

    Attributes:
        command: Its path.
        timeout: The seconds that importing a module may take.
    """

    command: Path
    timeout: float = 60.0

    @property
    def path(self) -> str:
        """The command as it can be run anywhere; one without a folder is looked up."""
        return str(self.command) if len(self.command.parts) == 1 else os.path.abspath(self.command)  # noqa: PTH100 - links


@dataclass(frozen=True)
class Failure:
    """A module that cannot be imported.

    Attributes:
        reason: What Python says.
        trail: The lines of the project that led there, the innermost last: files are relative to it.
    """

    reason: str
    trail: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class _Job:
    """One module: its name, the folder in which that name begins, its file, and whether all of it may run."""

    name: str
    base: str
    file: str
    whole: bool


def failures(folder: Path, interpreter: Interpreter) -> dict[str, Failure | None]:
    """Import the modules in `src/` and the tests; says for each file, relative to `folder`, what goes wrong.

    Of `__main__` modules only the imports run, and scripts elsewhere do not run at all: they would do their work.
    """
    folder = folder.resolve()
    pending = list(_jobs(folder))
    found: dict[str, Failure | None] = {}
    while pending:
        done = _run(pending, folder, interpreter)
        for job, failure in zip(pending, done, strict=False):
            found[Path(job.file).relative_to(folder).as_posix()] = failure
        pending = pending[len(done) :]
    return found


def _jobs(folder: Path) -> Iterator[_Job]:
    """Return the modules to import: those of `src/`, then the tests, which may rest on what a `conftest` does."""
    source, tests = folder / "src", folder / "tests"
    for path in sorted(
        python_files(folder), key=lambda path: (tests in path.parents, path.name != "conftest.py", path)
    ):
        is_test = path.stem.startswith("test_") or path.stem in ("conftest", "__init__")
        if path.suffix != ".py" or not (source in path.parents or (tests in path.parents and is_test)):
            continue
        roots = (above for above in path.parents if not (above / "__init__.py").exists())
        base = source if source in path.parents else next(roots)
        parts = path.relative_to(base).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if parts and all(part.isidentifier() for part in parts):
            yield _Job(".".join(parts), str(base), str(path), path.stem != "__main__")


def _run(jobs: list[_Job], folder: Path, interpreter: Interpreter) -> list[Failure | None]:
    """Return the outcome of the first jobs: of all, or up to the one that ended Python."""
    with tempfile.TemporaryDirectory(prefix="mcp-bindgen.") as scratch:
        todo, out = Path(scratch, "jobs.json"), Path(scratch, "out")
        todo.write_text(json.dumps([vars(job) for job in jobs]), "utf-8")
        out.touch()
        code = _python([_SCRIPT, todo, out], folder, interpreter)
        done = [_failure(json.loads(line), folder) for line in out.read_text("utf-8").split("\n")[:-1]]
    if len(done) == len(jobs) or (code is None and done):  # who is late after others is tried again, as the first
        return done
    seconds = f"did not end within {interpreter.timeout:g} seconds"
    reason = f"importing it {seconds if code is None else f'ended Python with exit code {code}'}"
    return [*done, Failure(reason, ((_relative(jobs[len(done)].file, folder), 1),))]


def _python(arguments: list[Path], folder: Path, interpreter: Interpreter) -> int | None:
    """Run Python with the modules of a project in reach; gives its exit code, or `None` when time is over."""
    inherited = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    try:
        return subprocess.run(  # noqa: S603 - the Python of the user
            [interpreter.path, "-P", *arguments],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(folder / "src"), *inherited]),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=interpreter.timeout,
        ).returncode
    except subprocess.TimeoutExpired:
        return None
    except OSError as error:
        raise BadInput(f"cannot be run ({error.strerror})", file=interpreter.command, fix=_FIX) from None


def _failure(said: dict[str, Any] | None, folder: Path) -> Failure | None:
    if said is None:
        return None
    places = [(_relative(file, folder), line) for file, line in said["trail"] if folder in Path(file).parents]
    return Failure(said["reason"], tuple(places))


def _relative(file: str, folder: Path) -> str:
    return Path(file).relative_to(folder).as_posix()
