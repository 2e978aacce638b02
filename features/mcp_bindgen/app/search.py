"""Search for tools by words: BM25 over their names, titles, descriptions and arguments."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp_bindgen.runtime.model.json_types import is_object

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_a-zA-Z]+")
_WEIGHTS = {"name": 3, "title": 2, "description": 1}
_SATURATION, _LENGTH = 1.2, 0.75  # the usual parameters k1 and b of BM25
_STEM = 4  # letters that two words of one stem share, as "forecast" and "forecasts"


def search(words: str, tools: Sequence[Mapping[str, Any]], limit: int = 10) -> list[int]:
    """Return the indexes of the tools that fit words, the best first.

    Args:
        words: The words, in any order; a tool need not have all of them.
        tools: Entries of `tools/list`.
        limit: The largest number of results.
    """
    counts = [_counts(tool) for tool in tools]
    average = sum(one.total() for one in counts) / max(1, len(counts))
    scores = [0.0] * len(counts)
    for word in dict.fromkeys(_words(words)):
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
