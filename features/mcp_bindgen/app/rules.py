"""Rules of an app about the callers of its entries: see `App.disable` and `App.visible`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.access import Identity
from mcp_bindgen.runtime.protocol.routing import place_of


class Rule(NamedTuple):
    """A rule that enables or disables entries.

    Attributes:
        is_enabled: True to enable them.
        names: Their names.
        tags: Tags, of which an entry has at least one.
        subject: The subject of a token for which the rule holds; `None` for all callers.
        issuer: The issuer of that token; `None` for tokens without an issuer, and of any if the rule disables.
    """

    is_enabled: bool
    names: Collection[str]
    tags: Collection[str]
    subject: str | None
    issuer: str | None = None

    def holds(self, names: Collection[str], tags: Collection[str], identity: Identity | None) -> bool:
        """Return True if the rule is about a caller, and an entry with these present and former names."""
        is_meant = not set(names).isdisjoint(self.names) or not set(tags).isdisjoint(self.tags)
        subject, issuer = (None, "") if identity is None else (identity.subject, identity.issuer)
        has_issuer = issuer == (self.issuer or "") or (self.issuer is None and not self.is_enabled)
        return is_meant and (self.subject is None or (self.subject == subject and has_issuer))


class Condition(NamedTuple):
    """A condition for callers of entries.

    Attributes:
        test: Returns True for the identity of a caller for whom the entries exist.
        name: Their name.
        tag: Their tag; with neither a name nor a tag, all entries are meant.
    """

    test: Callable[[Identity], bool]
    name: str | None = None
    tag: str | None = None

    def holds(self, identity: Identity | None) -> bool:
        """Return True if the condition holds for a caller; an error of the test is logged, and it does not hold."""
        try:
            return identity is not None and self.test(identity) is True
        except Exception as error:
            log.warning("%s: a test of visible() failed, so it hides: %r", place_of(self.test), error)
            return False

    def selects(self, names: Collection[str], tags: Collection[str]) -> bool:
        """Return True if the condition is about an entry with these present and former names."""
        return self.name in names or self.tag in tags or not (self.name or self.tag)


def check_used(conditions: Iterable[Condition], entries: Collection[tuple[Collection[str], Collection[str]]]) -> None:
    """Log a warning for each condition that selects no entry, because of a misspelt name or tag: it hides nothing.

    Args:
        conditions: The conditions of an app.
        entries: The names and the tags of each of its entries.
    """
    for one in conditions:
        if not any(one.selects(*entry) for entry in entries):
            log.warning("%s: visible() hides nothing: no entry has %s", place_of(one.test), one.tag or [one.name])
