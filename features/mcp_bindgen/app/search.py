"""Search for tools by words: BM25 over names, titles, descriptions and arguments; and the two tools that offer it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel

from mcp_bindgen.runtime.model.base import Model
from mcp_bindgen.runtime.model.json_types import is_object

from .context import Context
from .errors import ToolError

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_a-zA-Z]+")
_WEIGHTS = {"name": 3, "title": 2, "description": 1}
_SATURATION, _LENGTH = 1.2, 0.75  # the usual parameters k1 and b of BM25
_STEM, _MAX_CHARACTERS = 4, 300
"""Letters that two words of one stem share, as "forecast" and "forecasts"; and length of the words of a search."""


def search(words: str, tools: Sequence[Mapping[str, Any]], limit: int = 10) -> list[int]:
    """Return the indexes of the tools that fit words, the best first.

    Args:
        words: The words, in any order; a tool need not have all of them. Only the first 300 characters count.
        tools: Entries of `tools/list`.
        limit: The largest number of results.
    """
    counts = [_counts(tool) for tool in tools]
    average = sum(one.total() for one in counts) / max(1, len(counts)) or 1
    scores = [0.0] * len(counts)
    for word in dict.fromkeys(_words(words[:_MAX_CHARACTERS])):
        found = [sum(number for known, number in one.items() if _fits(word, known)) for one in counts]
        holders = sum(map(bool, found))
        rarity = math.log(1 + (len(counts) - holders + 0.5) / (holders + 0.5))
        for index, number in enumerate(found):
            length = 1 - _LENGTH + _LENGTH * counts[index].total() / average
            scores[index] += rarity * number * (_SATURATION + 1) / (number + _SATURATION * length) if number else 0
    best = sorted(range(len(counts)), key=lambda index: -scores[index])
    return [index for index in best if scores[index] > 0][:limit]


def _counts(tool: Mapping[str, Any]) -> Counter[str]:
    """Return word -> weighted number of its occurrences."""
    counts: Counter[str] = Counter()
    for member, weight in _WEIGHTS.items():
        for word in _words(str(tool.get(member) or "")):
            counts[word] += weight
    schema = tool.get("inputSchema")
    arguments = schema.get("properties") if is_object(schema) else None
    for name, argument in arguments.items() if is_object(arguments) else ():
        described = argument.get("description", "") if is_object(argument) else ""
        counts.update(_words(f"{name} {described}"))
    return counts


def _words(text: str) -> Iterator[str]:
    return (word.lower() for word in _WORD.findall(text))


def _fits(asked: str, known: str) -> bool:
    shorter, longer = sorted((asked, known), key=len)
    return asked == known or (len(shorter) >= _STEM and longer.startswith(shorter))


SEARCH, CALL = "search_tools", "call_tool"


class FoundTools(BaseModel):
    """The entries of tools that fit a search, as in `tools/list`."""

    tools: list[dict[str, Any]]


class _Inner(NamedTuple):
    name: str
    arguments: dict[str, Any] | None


async def search_tools(words: str, ctx: Context, limit: int = 5) -> FoundTools:
    """Find the tools that fit some words, the best first.

    Args:
        words: What the tool should do.
        limit: Maximum of tools.
    """
    server = ctx.server
    handlers = server.contract.handlers["tool"].items()
    found = [one.entry for name, one in handlers if name not in (SEARCH, CALL) and server.offers(one, ctx, listed=True)]
    return FoundTools(tools=[found[index] for index in search(words, found, limit)])


async def call_tool(name: str, ctx: Context, arguments: dict[str, Any] | None = None) -> Model:
    """Call a tool that `search_tools` has found.

    Args:
        name: Its name.
        arguments: Its arguments, by its input schema.
    """
    if name == CALL:
        raise ToolError(f"{CALL} does not call itself")
    server = ctx.server
    ctx.link.endpoint.authorize(ctx.identity, ctx.wire_revision, [("tools/call", name)])
    result = await server.call_tool(_Inner(name, arguments), ctx)
    found: Model = server.result("tools/call", result) if is_object(result) else result
    return found
