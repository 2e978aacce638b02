"""Walk a range of commits and compare the states of a schema file: which commit changed what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mcp_bindgen.protocol import Protocol, build
from mcp_bindgen.spec import BadInput, Store, named
from mcp_bindgen.spec.errors import locating
from mcp_bindgen.spec.git import Commit
from mcp_bindgen.spec.sources import GitPlace

from .engine import compare
from .finding import Comparison


@dataclass(frozen=True)
class Skipped:
    """A commit whose state of the file was not compared.

    Attributes:
        commit: The commit.
        reason: Why its state could not be read.
    """

    commit: Commit
    reason: str


@dataclass(frozen=True)
class Walked:
    """What a walk through commits found beside changes.

    Attributes:
        source: The file and the range, as they were named.
        commits: How many commits of the range touched the file.
        same: How many of them left its structure as it was, and changed words or layout.
        skipped: Those whose state could not be read; the next one is compared with the last one before them.
    """

    source: str
    commits: int
    same: int
    skipped: tuple[Skipped, ...]


class Walk:
    """The commits of a range that touched a schema file.

    Args:
        place: The file and the range, `A..B`: what B has and A has not. Without A it begins with the file itself, and
            without B it ends at HEAD.
        store: The `schema/` folder.
        semantics: The facts about schema files.
        merged: Look at the commits of merged branches, instead of at their merges.

    Raises:
        BadInput: The range has no such ends.
    """

    def __init__(self, place: GitPlace, store: Store, semantics: Mapping[str, Any], *, merged: bool = False) -> None:
        self._place = place
        self._store = store
        self._semantics = semantics
        first, _, last = place.revision.partition("..")
        if ".." in last or last.startswith("."):
            raise BadInput(f"{place.revision!r} is no range", file=place.argument, fix="write A..B, with two dots")
        repository = place.repository
        with locating(place.argument):
            self._last = repository.resolve(last or "HEAD")
            self._first = repository.resolve(first) if first else None
            self.commits = repository.touching(place.path, self._last, self._first, merged=merged)
        self._models: dict[str, Protocol | BadInput] = {}
        self._standing: dict[str, tuple[Protocol, tuple[Commit, ...]] | None] = {}
        self._same = 0
        self._skipped: list[Skipped] = []

    def compare(
        self, *, evidence: bool = False, tell: Callable[[Commit], object] = id
    ) -> tuple[list[Comparison], Walked]:
        """Compare the file in each commit with what it was before; what did not change its structure is left out.

        Where no commit did, the ends of the range are compared, so that there is something to report.

        Args:
            evidence: Whether each finding on the wire gets a witness.
            tell: Is told each commit before it is looked at.

        Raises:
            BadInput: Nothing could be compared.
        """
        found = list(self._comparisons(evidence, tell))
        if not found:
            with locating(self._place.argument):
                new = self._read(self._last)
                old = self._read(self._first) if self._first is not None and not self.commits else new
            found.append(compare(old, new, evidence=evidence))
        return found, Walked(self._place.argument, len(self.commits), self._same, tuple(self._skipped))

    def _comparisons(self, evidence: bool, tell: Callable[[Commit], object]) -> Iterator[Comparison]:
        for commit in self.commits:
            tell(commit)
            blob = self._blob(commit.id)
            before = self._before(commit)
            old, between = before if before is not None else (None, ())
            try:
                new = self._read(commit)
            except BadInput as error:
                where = f"{error.pointer}: " if error.pointer else ""
                self._skipped.append(Skipped(commit, f"{where}{error.message}"))
                self._standing[blob] = (old, (*between, commit)) if old is not None else None
                continue
            self._standing[blob] = new, ()
            if old is None:
                continue
            if old.digest == new.digest:
                self._same += 1
            else:
                yield replace(compare(old, new, evidence=evidence), commits=(*between, commit))

    def _before(self, commit: Commit) -> tuple[Protocol, tuple[Commit, ...]] | None:
        """Return the last state before a commit that can be read, and the commits since then whose states cannot be."""
        blob = self._blob(f"{commit.id}^")
        if blob not in self._standing:
            try:
                parent = self._place.repository.resolve(f"{commit.id}^")
                self._standing[blob] = self._read(parent), ()
            except BadInput:  # it cannot be read, or there is no commit before
                self._standing[blob] = None
        return self._standing[blob]

    def _blob(self, commit: str) -> str:
        """Return the hash of the file in a commit; empty where there is no such file."""
        try:
            found = self._place.repository.find(commit, self._place.path)
        except BadInput:
            return commit  # something else than a file, or no commit: a state of its own
        return found.id if found is not None else ""

    def _read(self, commit: Commit) -> Protocol:
        """Return the model of the file in a commit; the same content is read once."""
        blob = self._blob(commit.id)
        if blob not in self._models:
            try:
                self._models[blob] = build(named(self._place.at(commit), self._store, self._semantics))
            except BadInput as error:
                self._models[blob] = error
        model = self._models[blob]
        if isinstance(model, BadInput):
            raise model
        return replace(model, revision=self._place.named(commit))
