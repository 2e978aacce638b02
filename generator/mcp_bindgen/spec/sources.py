"""Read schema files from where people keep them: a path, an address, a commit of a local clone, standard input."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Container
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath

from . import web
from .errors import BadInput, locating
from .git import Commit, Repository, is_folder

LARGEST = 16 * 1024 * 1024
"""The bytes that a schema file may have; the largest one of the protocol has a hundredth of it."""

STDIN = "-"
_GIT = "git:"
_FORM = "write git:REPO@REV:PATH, as in git:../specification@main:schema/draft/schema.json"
_SPEAKING = re.compile(r"\d{4}-\d{2}-\d{2}|draft")


@dataclass(frozen=True)
class Source:
    """A schema file and where it is from.

    Attributes:
        content: Its bytes.
        argument: What names it on a command line; what may be secret in an address is left out.
        revision: What to call its revision: the folder that it is in, where that is a date or `draft`, else its own
            name; a file of a commit has the commit behind an `@`.
        name: The name of the file, without folders.
        key: The same for the same place, wherever one stands: a digest, so it holds no secrets.
        commit: The commit that it was read from, if any.
    """

    content: bytes
    argument: str
    revision: str
    name: str
    key: str
    commit: Commit | None = None

    @property
    def label(self) -> str:
        """What errors call it."""
        return "standard input" if self.argument == STDIN else self.argument


Readable = str | Path | Source
"""What names a source: what somebody wrote, the path of a file, or a source that was read already."""


@dataclass(frozen=True)
class GitPlace:
    """A file in commits of a repository: `git:REPO@REV:PATH`.

    Attributes:
        repository: The repository.
        revision: What names the commit; two, with `..` between them, are a range.
        path: The file, from the top of the repository.
        argument: All of it, as it was written.
    """

    repository: Repository
    revision: str
    path: str
    argument: str

    def named(self, commit: Commit) -> str:
        """Return what to call the revision of the file in a commit."""
        return f"{_revision(PurePosixPath(self.path))}@{commit.short}"

    def at(self, commit: Commit) -> Source:
        """Return the file as it is in a commit.

        Raises:
            BadInput: It is not there, is no file, or is too large.
        """
        with locating(self.argument):
            blob = self.repository.find(commit.id, self.path)
            if blob is None:
                raise BadInput(f"there is no {self.path!r} in that commit", fix="give its path from the top")
            if blob.size > LARGEST:
                raise _too_large()
            content = self.repository.content(blob)
        place = f"{_GIT}{self.repository.folder.resolve()}@{self.revision}:{self.path}"
        name = PurePosixPath(self.path).name
        return Source(content, self.argument, self.named(commit), name, _key(place), commit)


def is_source(name: str, revisions: Container[str]) -> bool:
    """Return whether `name` names a schema file, and not one of the `revisions`; these come first."""
    if name in revisions:
        return False
    marked = name == STDIN or name.startswith(_GIT) or "/" in name or os.sep in name
    return marked or name.endswith(".json") or os.path.exists(name)  # noqa: PTH110 - no error for a name that is too long


def is_range(name: str) -> bool:
    """Return whether `name` names a file in a range of commits: `git:REPO@A..B:PATH`."""
    return name.startswith(_GIT) and ".." in git_place(name).revision


def read(name: Readable) -> Source:
    """Read a source.

    Raises:
        BadInput: It cannot be read, or is larger than `LARGEST`.
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
    """Return what `git:REPO@REV:PATH` names.

    Folders may have an `@` in their names as well: the first one behind a folder that exists is the one that counts.

    Raises:
        BadInput: It has another form, or there is no such repository.
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
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", file=path, fix="give the path of a schema file") from None
    whole = path.resolve()
    return _made(content, str(path), _revision(whole), path.name, str(whole))


def _stdin() -> Source:
    content = sys.stdin.buffer.read(LARGEST + 1)
    if not content.strip():
        raise BadInput("is empty", file="standard input", fix="pipe one schema file into it, and name - only once")
    return _made(content, STDIN, "stdin", "standard input", STDIN)


def _address(url: str) -> Source:
    with locating(url.partition("://")[0] + "://..."):
        label = web.shown(url)
    with locating(label):
        content = web.fetch(url, LARGEST)
    path = PurePosixPath(web.path_of(url))
    place = re.sub("://[^/?#]*@", "://", url, count=1)
    return _made(content, label, _revision(path), path.name, place)


def _made(content: bytes, argument: str, revision: str, name: str, place: str) -> Source:
    source = Source(content, argument, revision, name, _key(place))
    if len(content) > LARGEST:
        raise _too_large().located(source.label)
    return source


def _revision(path: PurePosixPath | Path) -> str:
    folder = path.parent.name
    return folder if _SPEAKING.fullmatch(folder) else path.stem


def _key(place: str) -> str:
    return sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _too_large() -> BadInput:
    return BadInput(f"has more than {LARGEST // 1024 // 1024} MiB", fix="give a schema file")
