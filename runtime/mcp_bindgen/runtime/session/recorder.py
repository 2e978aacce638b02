"""Find out what a broadcast says, to pass it on to clients of other processes."""

from __future__ import annotations

from typing import Any

from ..protocol.envelope import RequestId
from ..protocol.link import Link
from ..protocol.methods import Notification
from ..protocol.negotiated import LEVELS, Negotiated


class Recorder(Link):
    """A link to no client in particular: it notes what is to be told.

    Args:
        agreed: What any client of the revision may count on; it is made to want everything.

    Attributes:
        told: The notifications and their params.
    """

    def __init__(self, agreed: Negotiated) -> None:
        agreed.log_level, agreed.subscriptions = LEVELS[0], None
        self.negotiated: Negotiated = agreed
        self.told: list[tuple[Notification[Any], Any]] = []

    async def request(self, method: Any, params: Any, *, related: RequestId | None = None) -> Any:
        """Refuse: there is nobody who could answer."""
        raise RuntimeError(f"{method.name}: a broadcast to several processes can only notify")

    async def notify(self, method: Notification[Any], params: Any, *, related: RequestId | None = None) -> None:
        """Note a notification."""
        self.told.append((method, params))
