"""Compare descriptions and deprecations."""

from __future__ import annotations

from collections.abc import Iterator

from mcp_bindgen.protocol.model import Object, Protocol, Type

from .labels import Labels
from .location import suffix
from .match import Matches
from .normalize import Normalizer

DocumentationChange = tuple[str, str, str, str, str, str]
"""Rule, subject, old and new text, old and new definition."""


def documentation_changes(
    old: Protocol, new: Protocol, matches: Matches, labels: Labels
) -> Iterator[DocumentationChange]:
    """Find changed descriptions of definitions and members that both revisions have.

    Nothing is found between a revision of ours and an external file: their descriptions always differ, and only our
    revisions have dated deprecations.
    """
    if old.origin != new.origin:
        return
    olds, news = Normalizer(old), Normalizer(new)
    for a, b in sorted(matches.new.items(), key=lambda pair: pair[1]):
        was, now = old.definitions[a], new.definitions[b]
        label = labels.both(a, b)
        if bool(was.deprecated) != bool(now.deprecated):
            rule = "deprecated" if now.deprecated else "undeprecated"
            yield rule, labels.message(b) or label, was.deprecated, now.deprecated, a, b
        if was.doc != now.doc:
            yield "description-changed", label, was.doc, now.doc, a, b
        for subject, before, after in _members(was.type, now.type, label, olds, news):
            yield "description-changed", subject, before, after, a, b


def _members(old: Type, new: Type, label: str, olds: Normalizer, news: Normalizer) -> Iterator[tuple[str, str, str]]:
    """Return subject, old and new description of members, also of inline objects."""
    one, other = olds.inline(old), news.inline(new)
    if not isinstance(one, Object) or not isinstance(other, Object):
        return
    after = {field.wire: field for field in other.fields}
    for was in one.fields:
        if (now := after.get(was.wire)) is not None:
            subject = label + suffix("field", was.wire)
            if was.doc != now.doc:
                yield subject, was.doc, now.doc
            yield from _members(was.type, now.type, subject, olds, news)
