"""Compare a republished upstream schema file with ours."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from mcp_bindgen.ir import build
from mcp_bindgen.spec import EffectiveSchema, Schema, Store, canonical, document, patches, sources
from mcp_bindgen.spec.errors import locating
from mcp_bindgen.spec.patches import Patch
from mcp_bindgen.spec.sources import Readable, Source

from .finding import Comparison, Plane
from .findings import compare
from .source import gates


@dataclass(frozen=True)
class Release:
    """Comparison of a file with a revision of ours.

    Attributes:
        revision: The revision.
        comparison: Changes in the file, with our corrections applied to both sides.
        unfit: Pointers of the known errors that the file does not have.
    """

    revision: str
    comparison: Comparison
    unfit: tuple[str, ...]

    @property
    def same(self) -> bool:
        """True if neither the wire nor generated code changes."""
        return all(finding.plane is Plane.DOC for finding in self.comparison.findings)


def against(store: Store, file: Readable, revision: str | None = None) -> Release:
    """Compare an upstream file with a revision of ours: the named revision, else the most similar one.

    Raises:
        BadInput: The file is not a usable schema, or the revision is unknown.
    """
    source = sources.read(file)
    patched, applied = patches.apply(canonical.canonical(document.read(source)[0]), store.errata)
    with locating(source.label):
        patched = document.normalise(patched)
    known = [revision] if revision is not None else list(store.pins)
    releases = [_release(store, name, patched, applied, source) for name in known]
    return min(releases, key=lambda release: len(release.comparison.findings))


def _release(store: Store, revision: str, patched: Schema, applied: Collection[Patch], source: Source) -> Release:
    ours = store.effective(revision)
    theirs = EffectiveSchema(
        revision=revision,
        definitions=patched["$defs"],
        digest=canonical.digest(patched),
        semantics=store.semantics,
        docs=store.docs,
        file=source.label,
    )
    new = replace(build(theirs), revision=f"{revision} as in {source.name}")
    gone = (patch.pointer for patch in ours.applied if patch not in applied)
    return Release(revision, compare(build(ours), new, gates=gates(store)), tuple(gone))
