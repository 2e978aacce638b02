"""Moves the imports of a Python file from the bindings of one revision to those of another.

Only the name of the package is written anew, at the places where the syntax says that it is that name; every other byte
stays. The outcome is parsed again and held against what was meant, so a file is moved as a whole or not at all.
"""

from __future__ import annotations

import ast
import codecs
import io
import itertools
import re
import tokenize
import warnings
from dataclasses import dataclass

from .mentions import Mentions, Spot

_LINES = re.compile("(\r\n|\r|\n)")


@dataclass(frozen=True)
class Moved:
    """A file after the move.

    Attributes:
        raw: Its bytes; the ones that it had, where nothing was moved.
        lines: The lines that have changed; they begin with 1.
        problem: Why it was left although it names the old package; empty where it was not.
    """

    raw: bytes
    lines: tuple[int, ...] = ()
    problem: str = ""


def move(raw: bytes, old: str, new: str, own: frozenset[str] = frozenset()) -> Moved:
    """Moves a file.

    Args:
        raw: What it holds.
        old: The name of the old package inside of ours, e.g. `v2025_11_25`.
        new: That of the new one.
        own: The top-level names of the project itself, whose modules may offer what they import to others; none where a
            module of the project has the name of the old package.
    """
    if old == new or old.encode() not in raw:
        return Moved(raw)
    try:
        source = _Source(raw)
        tree = source.tree()
        mentions = Mentions(tree, old, new, own)
        spots = list(mentions.rename())
        if spots and mentions.problem:
            return Moved(raw, problem=mentions.problem)
        places = sorted({place for spot in spots for place in source.places(spot, old)})
        moved = source.replaced(places, old, new)
        if ast.dump(moved.tree()) != ast.dump(tree):
            raise _Unclear(f"{old} stands there in a way that is not understood")
    except _Unclear as error:
        return Moved(raw, problem=str(error))
    except (SyntaxError, UnicodeError, ValueError, LookupError, tokenize.TokenError) as error:
        return Moved(raw, problem=f"is not Python that can be read: {error}")
    except (RecursionError, MemoryError):
        return Moved(raw, problem="is nested too deeply to be read")
    return Moved(moved.raw, tuple(sorted({source.line(place) for place in places})))


class _Unclear(Exception):
    """It is not certain where something stands."""


class _Source:
    """The text of a file, with line ends of its own."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.mark = codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b""
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        self.encoding = encoding.removesuffix("-sig")
        self.text = raw[len(self.mark) :].decode(self.encoding)
        if self._encoded(self.text) != raw:
            raise ValueError(f"its encoding, {self.encoding}, cannot be written as it was")
        pieces = _LINES.split(self.text)
        self.lines = pieces[::2]
        self.starts = [0]
        for line, end in zip(self.lines, [*pieces[1::2], ""], strict=True):
            self.starts.append(self.starts[-1] + len(line) + len(end))

    def _encoded(self, text: str) -> bytes:
        return self.mark + text.encode(self.encoding)

    def tree(self) -> ast.Module:
        """Its syntax."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse("\n".join(self.lines))

    def line(self, offset: int) -> int:
        """The line of an offset into the text."""
        return next(number for number, start in enumerate(self.starts[1:], 1) if offset < start)

    def offset(self, line: int, column: int) -> int:
        """The offset of a place as `ast` says it: columns count bytes of UTF-8."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def places(self, spot: Spot, old: str) -> list[int]:
        """The offsets at which a spot names the old package."""
        start, found = self.offset(spot.line, spot.column), list[int]()
        if spot.end is not None:
            text = self.text[start : self.offset(*spot.end)]
            found = [start + hit.start() for hit in re.finditer(re.escape(old), text)]
        else:
            start = start if spot.word is None else self._word(spot, start)
            found = [start] if self.text.startswith(old, start) else []
        if len(found) != spot.count:
            raise _Unclear(f"line {spot.line} names {old} in a way that is not understood")
        return found

    def _word(self, spot: Spot, start: int) -> int:
        """The offset of a name, by its number among the names that follow a place."""
        before = start - self.starts[spot.line - 1]
        rest = "\n".join([self.lines[spot.line - 1][before:], *self.lines[spot.line :]])
        names = (token for token in tokenize.generate_tokens(io.StringIO(rest).readline) if token.type == tokenize.NAME)
        row, column = next(itertools.islice(names, spot.word, None)).start
        return self.starts[spot.line + row - 2] + column + (before if row == 1 else 0)

    def replaced(self, places: list[int], old: str, new: str) -> _Source:
        """The same file with the new name at some offsets."""
        parts: list[str] = []
        end = 0
        for place in places:
            parts += [self.text[end:place], new]
            end = place + len(old)
        return _Source(self._encoded("".join([*parts, self.text[end:]])))
