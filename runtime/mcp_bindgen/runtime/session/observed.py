"""Show an observer what is asked; used only while there is one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ..protocol.methods import Request
from ..protocol.observation import Observer

T = TypeVar("T")


async def asked(
    observer: Observer, link: Any, method: Request[Any, Any, Any], params: Any, ask: Callable[..., Awaitable[T]]
) -> T:
    """Send a request of ours by `ask`, which takes the method, the params and what the observer adds to its `_meta`."""
    with observer.asking(link.peer.role, link, link.peer.dispatcher.revision, method, params) as seen:
        answer = await ask(method, params, meta=seen.meta)
        seen.answered(answer)
        return answer
