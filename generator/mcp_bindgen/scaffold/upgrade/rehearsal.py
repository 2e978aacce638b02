"""Try an upgrade out in a copy of a project before anything is written."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mcp_bindgen.emit.header import command_of
from mcp_bindgen.protocol import naming
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.transaction import Change, read

from ..generated.replacement import Report
from ..project import FILE, TABLE, Project
from .copying import files, is_generated, python_files
from .import_check import Failure, Interpreter, failures
from .rewrite_imports import rewrite_imports

_TEXT = 1_000_000
"""The bytes of a file up to which it is looked through for mentions."""


@dataclass(frozen=True)
class Left:
    """A file of the owner's that still imports the old bindings.

    Attributes:
        file: The file, relative to the project.
        line: The line that stands against it.
        reason: Why.
    """

    file: str
    line: int
    reason: str


@dataclass
class Rehearsal:
    """The copy of a project while it is taken to another revision.

    Attributes:
        project: The project itself.
        copy: The copy.
        old: The revision that is replaced.
        new: The one that takes its place.
        interpreter: The Python that imports.
        before: What importing its files came to before.
        moved: The files that are moved, with the lines.
        originals: What the files held that may change.
        left: The files that are not.
        generated: What became of generated files.
    """

    project: Project
    copy: Path
    old: str
    new: str
    interpreter: Interpreter
    before: dict[str, Failure | None] = field(default_factory=dict[str, "Failure | None"])
    moved: dict[str, tuple[int, ...]] = field(default_factory=dict[str, "tuple[int, ...]"])
    originals: dict[str, bytes] = field(default_factory=dict[str, bytes])
    left: list[Left] = field(default_factory=list[Left])
    generated: Report | None = None

    def run(self, *, force: bool = False) -> None:
        """Take the copy to the new revision and makes sure that what could be imported still can."""
        self.before = failures(self.copy, self.interpreter)
        if any(self.before.values()) and self.project.contract is not None:
            self._generate()  # perhaps only because generated files are missing
            self.before |= {file: None for file, failure in self._tried().items() if failure is None}
        self.originals[FILE] = pyproject = self.project.file.read_bytes()
        (self.copy / FILE).write_bytes(_revised(self.project, pyproject.decode(), self.old, self.new).encode())
        if self.project.contract is not None:
            self._restore()
            self.generated = self._generate(force=force)
        self._move()
        while broken := {file: one for file, one in self._tried().items() if one and not self.before.get(file)}:
            self._give_back(broken)

    def _tried(self) -> dict[str, Failure | None]:
        return failures(self.copy, self.interpreter)

    def _generate(self, *, force: bool = False) -> Report:
        from ..generated.regeneration import generate_contract  # a project without a contract does without

        report = generate_contract(self.copy, force=force)
        return replace(report, folder=self.project.generated.relative_to(self.project.folder))

    def _restore(self) -> None:
        """Make the generated files what they are in the project."""
        for path in self._below(self.copy):
            path.unlink()
        for path in self._below(self.project.folder):
            target = self.copy / path.relative_to(self.project.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            self.originals[_name(target, self.copy)] = content = path.read_bytes()
            target.write_bytes(content)

    def _below(self, root: Path) -> list[Path]:
        generated = root / self.project.generated.relative_to(self.project.folder)
        return list(files(generated)) if generated.is_dir() else []

    def _move(self) -> None:
        own, ours = self._own(), self._below(self.copy)
        for path in python_files(self.copy):
            name, raw = path.relative_to(self.copy).as_posix(), path.read_bytes()
            if path.is_symlink() or path in ours:
                continue
            found = rewrite_imports(raw, naming.package(self.old), naming.package(self.new), own)
            if is_generated(raw):
                if found.lines:
                    how = command_of(raw.decode(errors="replace"))
                    self.left.append(Left(name, found.lines[0], f"is generated; regenerate with: {how}"))
            elif (self.project.folder / name).is_symlink():
                if found.lines:
                    self.left.append(Left(name, found.lines[0], "it is a link to a file outside of the project"))
            elif found.problem:
                self.left.append(Left(name, 1, found.problem))
            elif found.lines:
                path.write_bytes(found.raw)
                self.moved[name], self.originals[name] = found.lines, raw

    def _own(self) -> frozenset[str]:
        """Return the top-level names of the project's modules; none where one is called like the old package."""
        paths = [path.relative_to(self.copy) for path in python_files(self.copy)]
        if any(naming.package(self.old) in (*path.parts, path.stem) for path in paths):
            return frozenset()
        return frozenset(path.parts[1].removesuffix(".py") for path in paths if path.parts[0] == "src")

    def _give_back(self, broken: Mapping[str, Failure]) -> None:
        """Give files back their old imports: those that Python stopped at, or else all of them."""
        found = dict(filter(None, map(self._culprit, broken.values())))
        if not found:
            file, failure = next(iter(broken.items()))
            found = {name: (lines[0], failure.reason) for name, lines in self.moved.items()}
            if not found:
                kept = self.generated is not None and self.generated.kept
                raise BadInput(
                    f"could not be imported any more: {failure.reason}",
                    file=self.copy / file,
                    fix="nothing was changed" + ("; --force moves edited files aside" if kept else ""),
                )
        for name, (line, reason) in found.items():
            del self.moved[name]
            (self.copy / name).write_bytes(self.originals[name])
            self.left.append(Left(name, line, reason))

    def _culprit(self, failure: Failure) -> tuple[str, tuple[int, str]] | None:
        """Return the innermost file that led to a failure and that was moved."""
        for name, line in reversed(failure.trail):
            if name in self.moved:
                return name, (line, failure.reason)
        return None

    def changes(self) -> dict[str, Change]:
        """Return what has changed; `pyproject.toml` comes last, so that a second run can finish a first one."""
        found: dict[str, Change] = {}
        for name in [*self._regenerated(), *self.moved, FILE]:
            before, after = self.originals.get(name), read(self.copy / name)
            if before != after:
                found[name] = Change(before, after)
        return found

    def _regenerated(self) -> list[str]:
        report = self.generated
        if report is None:
            return []
        aside = [name for pair in report.moved for name in pair]
        return sorted((report.folder / name).as_posix() for name in {*report.written, *report.removed, *aside})

    def mentions(self) -> Iterator[str]:
        """Return the lines in which the owner still names the old revision, e.g. in the README."""
        names = "|".join(map(re.escape, (self.old, naming.package(self.old))))
        name = re.compile(rf"(?<![\w.-])({names})(?![\w-])")
        passed = {*self._below(self.copy), *(self.copy / one.file for one in self.left)}
        for path in files(self.copy):
            if path in passed or path.is_symlink() or path.suffix == ".lock" or path.stat().st_size > _TEXT:
                continue
            for number, line in enumerate(path.read_text("utf-8", errors="ignore").split("\n"), 1):
                if name.search(line):
                    yield f"{_name(path, self.copy)}:{number}"


def _name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def _revised(project: Project, text: str, old: str, new: str) -> str:
    """Return the text of a `pyproject.toml` with another revision, and every other character as it was."""
    wanted = tomllib.loads(text)
    listed = wanted["tool"][TABLE]["revisions"]
    if old not in listed:
        return text
    listed[:] = [new if one == old else one for one in listed]
    start = text.find(old)
    while start >= 0:
        candidate = text[:start] + new + text[start + len(old) :]
        if tomllib.loads(candidate) == wanted:
            return candidate
        start = text.find(old, start + 1)
    return replace(project, revisions=tuple(sorted(listed))).written(text)
