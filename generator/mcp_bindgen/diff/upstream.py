"""Compare a schema file that upstream published again with ours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from mcp_bindgen.protocol import build
from mcp_bindgen.spec import BadInput, EffectiveSchema, Schema, Store, canonical, document, patches
from mcp_bindgen.spec.errors import locating

from .engine import compare
from .finding import Comparison, Plane


@dataclass(frozen=True)
class Release:
    """A file compared with a revision of ours.

    Attributes:
        revision: The revision.
        comparison: What the file changes, with our corrections applied to both.
        unfit: The pointers of the corrections that do not fit the file any more.
    """

    revision: str
    comparison: Comparison
    unfit: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether neither the wire nor generated code changes."""
        return all(finding.plane is Plane.DOC for finding in self.comparison.findings)


def against(store: Store, file: Path, revision: str | None = None) -> Release:
    """Compare a file that upstream published with a revision of ours: the one that is named, else the nearest.

    Raises:
        BadInput: The file is not a usable schema, or the revision is unknown.
    """
    upstream = canonical.canonical(document.read(file)[0])
    known = [revision] if revision is not None else list(store.pins)
    releases = [_release(store, name, upstream, file) for name in known]
    return min(releases, key=lambda release: len(release.comparison.findings))


def _release(store: Store, revision: str, upstream: Schema, file: Path) -> Release:
    ours = store.effective(revision)
    unfit: list[str] = []
    for patch in store.ledger(revision):
        try:
            upstream = patches.apply(upstream, (patch,))
        except BadInput:
            unfit.append(patch.pointer)
    with locating(file):
        patched = document.normalise(upstream)
    theirs = EffectiveSchema(
        revision=revision,
        definitions=patched["$defs"],
        digest=canonical.digest(patched),
        semantics=store.semantics,
        docs=store.docs,
        file=file,
    )
    new = replace(build(theirs), revision=f"{revision} as in {file.name}")
    return Release(revision, compare(build(ours), new), tuple(unfit))
