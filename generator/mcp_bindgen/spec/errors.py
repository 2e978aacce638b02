"""Error for bad input, and text that is safe to print."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from unicodedata import category

_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef]"
)
"""Invisible letters and marks, without the two selectors of emoji and text style."""


class BadInput(Exception):
    """Error of unusable input, as one line with place, problem and fix.

    Args:
        message: The problem.
        file: The file, if any.
        pointer: JSON Pointer (RFC 6901) to the place inside the file.
        fix: Action for the user.
    """

    def __init__(
        self, message: str, *, file: object = None, pointer: str | None = None, fix: str | None = None
    ) -> None:
        self.message = message
        self.file = str(file) if file is not None else None
        self.pointer = pointer
        self.fix = fix
        super().__init__(message)

    def located(self, file: object) -> BadInput:
        """Return the same error with the name of the file, if it has none."""
        if self.file is not None:
            return self
        return BadInput(self.message, file=file, pointer=self.pointer, fix=self.fix)

    def __str__(self) -> str:
        place = (self.file or "") + (f"#{self.pointer}" if self.pointer is not None else "")
        line = f"{place}: {self.message}" if place else self.message
        return printable(f"{line}; {self.fix}" if self.fix else line)


@contextmanager
def locating(file: object, *kinds: type[Exception]) -> Generator[None]:
    """Add the name of `file` to `BadInput` errors without a file; errors of other `kinds` become such errors."""
    try:
        yield
    except BadInput as error:
        raise error.located(file) from None
    except kinds as error:
        raise BadInput(str(error), file=file) from None


def suggestion(name: str, known: Iterable[str], otherwise: str = "", *, most: int = 1) -> str:
    """Return advice for an unknown name: the nearest known names.

    Args:
        name: The name.
        known: The known names.
        otherwise: Text after the advice, or without near names; by default the list of all names.
        most: Maximum number of near names.
    """
    from mcp_bindgen.runtime.similar_names import similar  # only mistakes wait for the import

    choices = list(known)
    near = similar(name, choices, most)
    if otherwise:
        return f"did you mean {' or '.join(near)}?" if near else otherwise
    return f"{f'did you mean {near[0]}? ' if near else ''}known: {', '.join(choices)}"


def near(path: Path) -> Path:
    """Return a path relative to the working folder if it is inside, and any other path unchanged."""
    here, whole = Path.cwd(), path.absolute()
    return whole.relative_to(here) if whole.is_relative_to(here) else path


def first_line(message: str) -> str:
    """Return the first line of a message, with shortened values."""
    text = message.splitlines()[0]
    return text if len(text) <= 200 else f"{text[:90]} ... {text[-90:]}"


def printable(text: str, keep: str = "") -> str:
    """Return text with escapes for control and format characters and line breaks.

    The escapes are JSON escapes, so that JSON text keeps its value.

    Args:
        text: The text.
        keep: Characters without escapes, such as line breaks.
    """
    if text.isascii() and "".join(set(text).difference(keep)).isprintable():
        return text
    unsafe = {ord(char): json.dumps(char)[1:-1] for char in set(text) - set(keep) if not is_visible(char)}
    return text.translate(unsafe) if unsafe else text


def shortened(text: str, max_characters: int) -> str:
    """Return the beginning of a text, with `...` for the rest."""
    return text if len(text) <= max_characters else f"{text[:max_characters]}..."


def several(words: Sequence[str], most: int) -> str:
    """Return the first words of a list with commas between them, and how many more there are."""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def is_visible(char: str) -> bool:
    """Return whether a terminal shows a character as itself; all spaces are visible."""
    return (char.isprintable() or category(char) == "Zs") and _INVISIBLE.match(char) is None
