"""Read files of local git repositories.

Commands are fixed. They run no programs from the configuration or attributes of a repository: no hooks, filters,
signature programs, pagers or transports.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import BadInput

_TIMEOUT = 120.0
_SUBJECT = 200
"""Maximum length of a subject, in characters: the first paragraph of a commit may be long."""

_HERE = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_NAMESPACE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)
"""Environment variables that select another repository, as in a hook."""

_KINDS = {"120000": "a symbolic link", "160000": "a submodule", "040000": "a folder"}


@dataclass(frozen=True)
class Commit:
    """Commit.

    Attributes:
        id: Full hash.
        date: Day of the commit.
        subject: Beginning of its message, unescaped.
    """

    id: str
    date: str
    subject: str

    @property
    def short(self) -> str:
        """Abbreviated hash."""
        return self.id[:10]


@dataclass(frozen=True)
class Blob:
    """File in a repository: its hash, and its size in bytes."""

    id: str
    size: int


def is_folder(name: str) -> bool:
    """Return whether `name`, possibly with a leading `~`, is a folder; False for invalid names."""
    return os.path.isdir(os.path.expanduser(name))  # noqa: PTH111, PTH112 - without errors for unknown users and long names


class Repository:
    """Local repository: a clone, a worktree or a bare repository.

    Args:
        folder: A folder in the repository.

    Raises:
        BadInput: The folder does not exist, or its name looks like an option.
    """

    def __init__(self, folder: str) -> None:
        if folder.startswith("-"):
            raise BadInput(f"a repository cannot be called {folder!r}", fix="write ./ before it")
        if not is_folder(folder):
            raise BadInput(f"there is no folder {folder!r}", fix="give the path of a local clone")
        self.folder = Path(folder).expanduser()
        self._listed: dict[tuple[str, str], bytes] = {}

    def resolve(self, revision: str) -> Commit:
        """Return the commit of a git revision: a branch, a tag, a hash, `HEAD~3`.

        Raises:
            BadInput: The revision is unknown, or git cannot read the repository.
        """
        if revision.startswith("-"):
            raise BadInput(f"{revision!r} is an option, not a revision", fix="name a branch, a tag or a commit")
        done = self._start("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if done.returncode and not done.stderr.strip():
            raise BadInput(
                f"there is no commit {revision!r} in this clone", fix="name an existing commit, or run git fetch in it"
            )
        (commit,) = self._commits("--no-walk", self._checked(done).decode().strip())
        return commit

    def find(self, commit: str, path: str) -> Blob | None:
        """Return the file at `path`, relative to the top of the repository, in a commit; `None` if there is none.

        Args:
            commit: Hash of the commit, or hash and `^`.
            path: The path.

        Raises:
            BadInput: It is not a regular file; symbolic links and submodules are not followed.
        """
        key = commit, path
        if key not in self._listed:
            arguments = ("ls-tree", "-z", "-l", "--full-tree", commit, "--", path)
            self._listed[key] = self._run("--literal-pathspecs", *arguments)
        for entry in self._listed[key].decode("utf-8", "surrogateescape").split("\0"):
            head, _, name = entry.partition("\t")
            if name == path:
                mode, _, blob, size = head.split()
                if mode in _KINDS:
                    raise BadInput(f"{path!r} is {_KINDS[mode]} there", fix="give the path of the file itself")
                if not size.isdigit():
                    raise BadInput(f"the content of {path!r} is not in this clone, a partial one", fix="fetch it")
                return Blob(blob, int(size))
        return None

    def content(self, blob: Blob) -> bytes:
        """Return the committed bytes of a file."""
        return self._run("cat-file", "blob", blob.id)

    def touching(self, path: str, last: Commit, after: Commit | None, *, merged: bool = False) -> list[Commit]:
        """Return the commits that changed a file, oldest first.

        Args:
            path: The file.
            last: Newest commit.
            after: Omit this commit and its ancestors.
            merged: True to return the commits of merged branches instead of the merges.
        """
        which = "--no-merges" if merged else "--first-parent"
        bounds = [last.id, *([f"^{after.id}"] if after is not None else [])]
        return self._commits("--reverse", "--topo-order", which, *bounds, "--", f":(top,literal){path}")

    def _commits(self, *arguments: str) -> list[Commit]:
        printed = self._run("rev-list", "--encoding=UTF-8", "--format=%H%x00%cs%x00%s", *arguments)
        lines = printed.decode("utf-8", "replace").split("\n")[1::2]  # a line `commit HASH` before each
        parts = [line.split("\0", 2) for line in lines]
        return [Commit(id, date, subject[:_SUBJECT]) for id, date, subject in parts]

    def _run(self, *arguments: str) -> bytes:
        return self._checked(self._start(*arguments))

    def _start(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = ["git", "-C", str(self.folder), "--no-pager", "-c", "core.fsmonitor=false", *arguments]
        # the environment forbids all transports, and a repository cannot override it
        variables = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}
        kept = {name: value for name, value in os.environ.items() if name not in _HERE}
        try:
            return subprocess.run(  # noqa: S603 - a fixed command, without a shell
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env={**kept, **variables, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
                timeout=_TIMEOUT,
            )
        except FileNotFoundError:
            raise BadInput("git is not installed", fix="install it, or give the path of a file") from None
        except subprocess.TimeoutExpired:
            raise BadInput(f"git does not answer within {_TIMEOUT:.0f} s", fix="look at the repository") from None

    def _checked(self, done: subprocess.CompletedProcess[bytes]) -> bytes:
        if done.returncode:
            raise self._failure(done.stderr.decode("utf-8", "replace").split("\n"))
        return done.stdout

    def _failure(self, lines: Sequence[str]) -> BadInput:
        """Return the error for the output of a failed git command."""
        if any("dubious ownership" in line for line in lines):
            folder = shlex.quote(str(self.folder.resolve()))
            return BadInput(
                "the repository belongs to another user, and git does not read it",
                fix=f"if you trust it: git config --global --add safe.directory {folder}",
            )
        if any("not a git repository" in line for line in lines):
            return BadInput(f"{str(self.folder)!r} is not a git repository", fix="give the path of a local clone")
        fatal = next((line for line in lines if line.startswith(("fatal: ", "error: "))), lines[0])
        return BadInput(f"git cannot read it: {fatal.partition(': ')[2] or fatal}", fix="look at the repository")
