"""Rules of an app about the callers of its entries: see `App.disable` and `App.visible`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.access import Identity
from mcp_bindgen.runtime.protocol.routing import place_of

from .handlers import BoundContract


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

    def holds(self, name: str, tags: Collection[str], identity: Identity | None) -> bool:
        """Return True if the rule is about an entry and a caller."""
        is_meant = name in self.names or not set(tags).isdisjoint(self.tags)
        subject, issuer = (None, "") if identity is None else (identity.subject, identity.issuer)
        has_issuer = issuer == (self.issuer or "") or (self.issuer is None and not self.is_enabled)
        return is_meant and (self.subject is None or (self.subject == subject and has_issuer))


class Condition(NamedTuple):
    """A condition for callers of entries.

    Attributes:
        test: Returns True for the identity of a caller for whom the entries exist.
        names: Their name, and the name that it became.
        tag: Their tag; with neither names nor a tag, all entries are meant.
    """

    test: Callable[[Identity], bool]
    names: Collection[str] = ()
    tag: str | None = None

    def holds(self, identity: Identity | None) -> bool:
        """Return True if the condition holds for a caller; an error of the test is logged, and it does not hold."""
        try:
            return identity is not None and self.test(identity) is True
        except Exception as error:
            log.warning("%s: a test of visible() failed, so it hides: %r", place_of(self.test), error)
            return False

    def selects(self, name: str, tags: Collection[str]) -> bool:
        """Return True if the condition is about an entry."""
        return name in self.names or self.tag in tags or not (self.names or self.tag)


def check_used(conditions: Mapping[Any, Iterable[Condition]], contract: BoundContract) -> None:
    """Log a warning for each condition that selects no entry, because of a misspelt name or tag: it hides nothing.

    Args:
        conditions: App -> its conditions.
        contract: The contract with the entries of all apps.
    """
    handlers = [one for named in contract.handlers.values() for one in named.values()]
    entries = [(owner, name, one.spec.tags) for one in handlers for owner, name in one.layers]
    for app, own in conditions.items():
        for one in own:
            if not any(owner is app and one.selects(name, tags) for owner, name, tags in entries):
                log.warning("%s: visible() hides nothing: no entry has %s", place_of(one.test), one.tag or [*one.names])
