"""Show an observer what is handled and asked; used only while there is one."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ..core.envelope import RequestId
from ..core.methods import Request
from ..core.observation import Handling, Observer
from ..core.revision import Handler

T = TypeVar("T")


async def asked(
    observer: Observer, link: Any, method: Request[Any, Any, Any], params: Any, ask: Callable[..., Awaitable[T]]
) -> T:
    """Send a request of ours by `ask`, which takes the method, the params and what the observer adds to its `_meta`."""
    with observer.asking(link.peer.role, link, link.peer.dispatcher.revision, method, params) as seen:
        answer = await ask(method, params, meta=seen.meta)
        seen.answered(answer)
        return answer


def shown(handler: Handler, seen: Handling) -> Handler:
    """Return a handler whose answers an observer is shown before they are written."""

    async def handle(link: Any, id_: RequestId | None, params: Any) -> Any:
        answer = handler(link, id_, params)
        answer = await answer if inspect.isawaitable(answer) else answer
        seen.answered(answer)
        return answer

    return handle
