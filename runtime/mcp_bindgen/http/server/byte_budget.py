"""Limit what is taken at once: of a session, of a principal and of all together."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakValueDictionary

from .call import too_many


@dataclass(slots=True, weakref_slot=True, eq=False)
class Budget:
    """A limit on what is taken and given back, maybe a part of a larger one.

    Attributes:
        most: How much may be taken at once.
        reason: What a client is told that wants more.
        above: The budget that it is a part of.
        used: How much is taken.
    """

    most: int
    reason: str
    above: Budget | None = None
    used: int = 0

    @property
    def free(self) -> int:
        """The amount that is left."""
        return self.most - self.used

    @property
    def is_full(self) -> bool:
        """Whether nothing is left, here or above."""
        return self.used >= self.most or (self.above is not None and self.above.is_full)

    def take(self, amount: int = 1) -> None:
        """Take something, here and above; raises `HttpError` where there is too little."""
        if self.used + amount > self.most:
            raise too_many(self.reason)
        if self.above is not None:
            self.above.take(amount)
        self.used += amount

    def add(self, amount: int) -> None:
        """Count something that is there already, whatever the limit says."""
        self.used += amount
        if self.above is not None:
            self.above.add(amount)

    def give_back(self, amount: int = 1) -> None:
        """Give back what was taken."""
        self.used -= amount
        if self.above is not None:
            self.above.give_back(amount)


class Budgets:
    """A limit on what all take together, and on what each principal takes of it.

    Args:
        most: How much all may take.
        of_principal: How much a principal may, where it is known.
        reason: What a client is told when that is too little, of whomever: a text with one `{}`.

    Attributes:
        all: The budget of all.
    """

    def __init__(self, most: int, of_principal: int, reason: str) -> None:
        self.all = Budget(most, reason.format(""))
        self._of_principal, self._reason = of_principal, reason.format(" of this user")
        self._parts: WeakValueDictionary[str, Budget] = WeakValueDictionary()

    def of(self, principal: str | None) -> Budget:
        """Return the budget of a principal, which lasts while somebody holds it; that of all where none is known."""
        if principal is None:
            return self.all
        found = self._parts.get(principal)
        if found is None:
            found = self._parts[principal] = Budget(self._of_principal, self._reason, self.all)
        return found
