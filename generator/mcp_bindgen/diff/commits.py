"""Compare the versions of a schema file in a range of commits, to find the commit of each change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from mcp_bindgen.ir import Protocol, build
from mcp_bindgen.spec import BadInput, Store, named
from mcp_bindgen.spec.errors import locating
from mcp_bindgen.spec.git import Commit
from mcp_bindgen.spec.sources import GitPlace

from .finding import Comparison, Skipped, Walked
from .findings import Gates, compare


class Walk:
    """Commits of a range that changed a schema file.

    Args:
        place: The file and the range `A..B`: the commits of B that A does not have. Without A it begins with the
            first version of the file; without B it ends at HEAD.
        store: The `schema/` folder.
        semantics: The facts about schema files.
        merged: True to walk the commits of merged branches instead of the merges.

    Raises:
        BadInput: The ends of the range are unknown.
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
        self, *, evidence: bool = False, gates: Gates = MappingProxyType({}), tell: Callable[[Commit], object] = id
    ) -> tuple[list[Comparison], Walked]:
        """Compare the file in each commit with its previous version; omit commits that keep its structure.

        If no commit changed the structure, the ends of the range are compared, so that there is a comparison to report.

        Args:
            evidence: True to add a witness to each finding on the wire.
            gates: As for `findings.compare`.
            tell: Called with each commit before it is compared.

        Raises:
            BadInput: No two versions can be compared.
        """
        found = list(self._comparisons(partial(compare, evidence=evidence, gates=gates), tell))
        if not found:
            with locating(self._place.argument):
                new = self._read(self._last)
                old = self._read(self._first) if self._first is not None and not self.commits else new
            found.append(compare(old, new, evidence=evidence, gates=gates))
        return found, Walked(self._place.argument, len(self.commits), self._same, tuple(self._skipped))

    def _comparisons(
        self, compare: Callable[[Protocol, Protocol], Comparison], tell: Callable[[Commit], object]
    ) -> Iterator[Comparison]:
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
                yield replace(compare(old, new), commits=(*between, commit))

    def _before(self, commit: Commit) -> tuple[Protocol, tuple[Commit, ...]] | None:
        """Return the last readable version before a commit, and the unreadable commits since then."""
        blob = self._blob(f"{commit.id}^")
        if blob not in self._standing:
            try:
                parent = self._place.repository.resolve(f"{commit.id}^")
                self._standing[blob] = self._read(parent), ()
            except BadInput:  # unreadable, or the first commit
                self._standing[blob] = None
        return self._standing[blob]

    def _blob(self, commit: str) -> str:
        """Return the hash of the file in a commit; empty if the commit does not have the file."""
        try:
            found = self._place.repository.find(commit, self._place.path)
        except BadInput:
            return commit  # not a file, or not a commit: unequal to every version
        return found.id if found is not None else ""

    def _read(self, commit: Commit) -> Protocol:
        """Return the model of the file in a commit; equal contents are read once."""
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
