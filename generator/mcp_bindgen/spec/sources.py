"""Read schema files from a path, an address, a commit of a local clone or standard input."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .errors import BadInput, locating
from .git import Commit, Repository, is_folder

MAX_BYTES = 16 * 1024 * 1024
"""Maximum size of a schema file in bytes, about 100 times the largest MCP schema."""

STDIN = "-"
_GIT = "git:"
_FORM = "write git:REPO@REV:PATH, as in git:../specification@main:schema/draft/schema.json"
_SPEAKING = re.compile(r"\d{4}-\d{2}-\d{2}|draft")


@dataclass(frozen=True)
class Source:
    """Schema file and its origin.

    Attributes:
        content: Bytes of the file.
        argument: Name on a command line, without possible secrets in an address.
        revision: Name of its revision: the folder of the file, if it is a date or `draft`, else the name of the file.
            For a file of a commit, `@` and the commit follow.
        name: Name of the file, without folders.
        commit: Commit of the file, if any.
    """

    content: bytes
    argument: str
    revision: str
    name: str
    commit: Commit | None = None

    @property
    def label(self) -> str:
        """Name in errors."""
        return "standard input" if self.argument == STDIN else self.argument


Readable = str | Path | Source
"""Name of a source, path of a file, or a source that was read already."""


@dataclass(frozen=True)
class GitPlace:
    """File in commits of a repository: `git:REPO@REV:PATH`.

    Attributes:
        repository: The repository.
        revision: Git revision, or a range of two with `..` between them.
        path: Path of the file, relative to the top of the repository.
        argument: The original text.
    """

    repository: Repository
    revision: str
    path: str
    argument: str

    def named(self, commit: Commit) -> str:
        """Return the name of the revision of the file in a commit."""
        return f"{_revision(PurePosixPath(self.path))}@{commit.short}"

    def at(self, commit: Commit) -> Source:
        """Return the file in a commit.

        Raises:
            BadInput: The file does not exist, is not a regular file, or is too large.
        """
        with locating(self.argument):
            blob = self.repository.find(commit.id, self.path)
            if blob is None:
                raise BadInput(f"there is no {self.path!r} in that commit", fix="give its path from the top")
            if blob.size > MAX_BYTES:
                raise _too_large()
            content = self.repository.content(blob)
        return Source(content, self.argument, self.named(commit), PurePosixPath(self.path).name, commit)


def is_source(name: str, revisions: Container[str]) -> bool:
    """Return whether `name` is a schema file; names of `revisions` take precedence."""
    if name in revisions:
        return False
    marked = name == STDIN or name.startswith(_GIT) or "/" in name or os.sep in name
    return marked or name.endswith(".json") or os.path.exists(name)  # noqa: PTH110 - no error for a name that is too long


def is_range(name: str) -> bool:
    """Return whether `name` is a file in a range of commits: `git:REPO@A..B:PATH`."""
    return name.startswith(_GIT) and ".." in git_place(name).revision


def read(name: Readable) -> Source:
    """Read a source.

    Raises:
        BadInput: The source cannot be read, or is too large.
    """
    if isinstance(name, Source):
        return name
    if isinstance(name, Path):
        return _file(name)
    if name == STDIN:
        return _stdin()
    if name.startswith(_GIT):
        place = git_place(name)
        with locating(name):
            if ".." in place.revision:
                raise BadInput("names a range of commits", fix="name one commit; only diff takes ranges")
            return place.at(place.repository.resolve(place.revision))
    return _address(name) if "://" in name else _file(Path(name))


def git_place(name: str) -> GitPlace:
    """Return the parts of `git:REPO@REV:PATH`.

    A folder may have an `@` in its name: the repository ends at the first `@` after an existing folder.

    Raises:
        BadInput: The form is wrong, or the repository does not exist.
    """
    parts = name.removeprefix(_GIT).split("@")
    heads = ["@".join(parts[:end]) for end in range(1, len(parts))]
    folder = next((head for head in heads if is_folder(head)), heads[0] if heads else "")
    revision, _, path = name.removeprefix(f"{_GIT}{folder}@").partition(":")
    with locating(name):
        if not (folder and revision and path):
            raise BadInput("is not complete", fix=_FORM)
        return GitPlace(Repository(folder), revision, path, name)


def _file(path: Path) -> Source:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", file=path, fix="give the path of a schema file") from None
    return _made(content, str(path), _revision(path.resolve()), path.name)


def _stdin() -> Source:
    content = sys.stdin.buffer.read(MAX_BYTES + 1)
    if not content.strip():
        raise BadInput("is empty", file="standard input", fix="pipe one schema file into it, and name - only once")
    return _made(content, STDIN, "stdin", "standard input")


def _address(url: str) -> Source:
    from . import web  # ssl and http take time to load, and few sources are addresses

    with locating(url.partition("://")[0] + "://..."):
        label = web.shown(url)
    with locating(label):
        content = web.fetch(url, MAX_BYTES)
    path = PurePosixPath(web.path_of(url))
    return _made(content, label, _revision(path), path.name)


def _made(content: bytes, argument: str, revision: str, name: str) -> Source:
    source = Source(content, argument, revision, name)
    if len(content) > MAX_BYTES:
        raise _too_large().located(source.label)
    return source


def _revision(path: PurePosixPath | Path) -> str:
    folder = path.parent.name
    return folder if _SPEAKING.fullmatch(folder) else path.stem


def _too_large() -> BadInput:
    return BadInput(f"has more than {MAX_BYTES // 1024 // 1024} MiB", fix="give a schema file")
