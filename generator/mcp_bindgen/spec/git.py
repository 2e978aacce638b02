"""Read files of local git repositories.

Commands are fixed, and none of them runs what a repository's own configuration or attributes name: no hooks, no
filters, no signature programs, no pager, no transport.
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
"""The characters of a subject that are kept: some commits have a whole text in the first paragraph."""

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
"""Variables that point git to another repository than the one that is named, as in a hook."""

_KINDS = {"120000": "a symbolic link", "160000": "a submodule", "040000": "a folder"}


@dataclass(frozen=True)
class Commit:
    """A commit.

    Attributes:
        id: Its full hash.
        date: The day on which it was committed.
        subject: The beginning of its message, as its author wrote it: not made printable.
    """

    id: str
    date: str
    subject: str

    @property
    def short(self) -> str:
        """The hash as people write it."""
        return self.id[:10]


@dataclass(frozen=True)
class Blob:
    """A file as git keeps it: its hash, and its size in bytes."""

    id: str
    size: int


def is_folder(name: str) -> bool:
    """Return whether `name`, perhaps with a `~` at its start, is a folder; names that no folder can have are not."""
    return os.path.isdir(os.path.expanduser(name))  # noqa: PTH111, PTH112 - without errors for unknown users and long names


class Repository:
    """A local repository: a clone, a worktree or a bare one.

    Args:
        folder: A folder of it.

    Raises:
        BadInput: It does not exist, or its name would be an option.
    """

    def __init__(self, folder: str) -> None:
        if folder.startswith("-"):
            raise BadInput(f"a repository cannot be called {folder!r}", fix="write ./ before it")
        if not is_folder(folder):
            raise BadInput(f"there is no folder {folder!r}", fix="give the path of a local clone")
        self.folder = Path(folder).expanduser()
        self._listed: dict[tuple[str, str], bytes] = {}

    def resolve(self, revision: str) -> Commit:
        """Return the commit that a revision (a branch, a tag, a hash, `HEAD~3`) names.

        Raises:
            BadInput: There is none, or git cannot read the repository.
        """
        if revision.startswith("-"):
            raise BadInput(f"{revision!r} is an option, not a revision", fix="name a branch, a tag or a commit")
        done = self._start("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if done.returncode and not done.stderr.strip():
            raise BadInput(
                f"there is no commit {revision!r} in this clone", fix="name one that is there, or run git fetch in it"
            )
        (commit,) = self._commits("--no-walk", self._checked(done).decode().strip())
        return commit

    def find(self, commit: str, path: str) -> Blob | None:
        """Return the file at `path`, from the top of the repository, in a commit; `None` where there is nothing.

        Args:
            commit: The hash of the commit, perhaps with a `^` behind it.
            path: The path.

        Raises:
            BadInput: It is no file: symbolic links and submodules are not followed.
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
        """Return the bytes of a file as they were committed."""
        return self._run("cat-file", "blob", blob.id)

    def touching(self, path: str, last: Commit, after: Commit | None, *, merged: bool = False) -> list[Commit]:
        """Return the commits that changed a file, oldest first.

        Args:
            path: The file.
            last: The newest commit that may be among them.
            after: Leave out this commit and what came before it.
            merged: Return the commits of merged branches in the place of their merges.
        """
        which = "--no-merges" if merged else "--first-parent"
        bounds = [last.id, *([f"^{after.id}"] if after is not None else [])]
        return self._commits("--reverse", "--topo-order", which, *bounds, "--", f":(top,literal){path}")

    def follows(self, new: Commit, old: Commit) -> bool:
        """Return whether `old` is part of the history of `new`."""
        return self._start("merge-base", "--is-ancestor", old.id, new.id).returncode == 0

    def _commits(self, *arguments: str) -> list[Commit]:
        printed = self._run("rev-list", "--encoding=UTF-8", "--format=%H%x00%cs%x00%s", *arguments)
        lines = printed.decode("utf-8", "replace").split("\n")[1::2]  # a line `commit HASH` before each
        parts = [line.split("\0", 2) for line in lines]
        return [Commit(id, date, subject[:_SUBJECT]) for id, date, subject in parts]

    def _run(self, *arguments: str) -> bytes:
        return self._checked(self._start(*arguments))

    def _start(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = ["git", "-C", str(self.folder), "--no-pager", "-c", "core.fsmonitor=false", *arguments]
        # which protocols may run is said in the environment, where no repository can say otherwise: none
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

    def _failure(self, said: Sequence[str]) -> BadInput:
        """Return the error for what git said before it failed."""
        if any("dubious ownership" in line for line in said):
            folder = shlex.quote(str(self.folder.resolve()))
            return BadInput(
                "the repository belongs to another user, and git does not read it",
                fix=f"if you trust it: git config --global --add safe.directory {folder}",
            )
        if any("not a git repository" in line for line in said):
            return BadInput(f"{str(self.folder)!r} is not a git repository", fix="give the path of a local clone")
        fatal = next((line for line in said if line.startswith(("fatal: ", "error: "))), said[0])
        return BadInput(f"git cannot read it: {fatal.partition(': ')[2] or fatal}", fix="look at the repository")
