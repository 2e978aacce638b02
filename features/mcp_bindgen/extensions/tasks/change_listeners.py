"""Tell who listens of tasks, each at their own pace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

Soon: TypeAlias = Callable[[Callable[[], Awaitable[None]]], None]
"""Has something done beside whoever asks for it."""


class News:
    """What links are to be told. Who reads slowly delays nobody, and only ids wait for them.

    Args:
        soon: Has something done soon.
        tell: Tells a link of a task, and waits until it has read that.
    """

    def __init__(self, soon: Soon, tell: Callable[[Any, str], Awaitable[None]]) -> None:
        self._soon = soon
        self._tell = tell
        self._waiting: dict[Any, dict[str, None]] = {}

    def add(self, link: Any, ids: Iterable[str]) -> None:
        """Have a link told of tasks, as they are when its turn comes."""
        news = dict.fromkeys(ids)
        if news and link in self._waiting:
            self._waiting[link].update(news)
        elif news:
            self._waiting[link] = news
            self._soon(partial(self._tell_all, link, news))

    async def _tell_all(self, link: Any, news: dict[str, None]) -> None:
        try:
            while news:
                id = next(iter(news))
                del news[id]
                await self._tell(link, id)
        finally:
            del self._waiting[link]
