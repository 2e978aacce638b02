"""Check the `schema/` folder: pins, patches and descriptions of each revision."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_bindgen.spec import Store

from .build import build
from .model import Object


@dataclass(frozen=True)
class Report:
    """One revision of a `schema/` folder.

    Attributes:
        revision: Its name.
        pinned: Whether the structure is the one that was imported.
        patches: How many known mistakes are corrected.
        unlisted: The pointers of those that the ledger does not expect in this revision.
        definitions: How many definitions the revision has, hoisted ones included.
        documented_definitions: How many of them have words.
        fields: How many fields they have.
        documented_fields: How many of those have words.
    """

    revision: str
    pinned: bool
    patches: int
    unlisted: tuple[str, ...]
    definitions: int
    documented_definitions: int
    fields: int
    documented_fields: int

    @property
    def sound(self) -> bool:
        """Whether the structure is as pinned, the ledger lists what it corrects, and every definition has words."""
        return self.pinned and not self.unlisted and self.documented_definitions == self.definitions


def reports_of(store: Store) -> list[Report]:
    """Return a report for each revision; raise `BadInput` where a file is damaged or a mistake is gone."""
    return [_report(store, revision) for revision in store.pins]


def _report(store: Store, revision: str) -> Report:
    source = store.effective(revision)
    definitions = build(source).definitions.values()
    fields = [
        field for definition in definitions if isinstance(definition.type, Object) for field in definition.type.fields
    ]
    return Report(
        revision=revision,
        pinned=store.is_pinned(revision),
        patches=len(source.applied),
        unlisted=tuple(patch.pointer for patch in source.applied if revision not in patch.revisions),
        definitions=len(definitions),
        documented_definitions=sum(bool(definition.doc) for definition in definitions),
        fields=len(fields),
        documented_fields=sum(bool(field.doc) for field in fields),
    )
