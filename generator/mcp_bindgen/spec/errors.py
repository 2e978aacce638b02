"""The one error that bad input raises, everywhere in the generator."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from difflib import get_close_matches
from unicodedata import category

_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks without a shape; the two selectors of emoji and text style are ordinary text."""


class BadInput(Exception):
    """Input that cannot be used, said in one line: where it stands, what is wrong and what to do.

    Args:
        message: What is wrong.
        file: The file it stands in, if there is one.
        pointer: JSON Pointer (RFC 6901) to the place inside the file.
        fix: What the user can do about it.
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
        """Return the same error, with the file named if it was not known deeper down."""
        if self.file is not None:
            return self
        return BadInput(self.message, file=file, pointer=self.pointer, fix=self.fix)

    def __str__(self) -> str:
        place = (self.file or "") + (f"#{self.pointer}" if self.pointer is not None else "")
        line = f"{place}: {self.message}" if place else self.message
        return printable(f"{line}; {self.fix}" if self.fix else line)


@contextmanager
def locating(file: object) -> Generator[None]:
    """Name `file` in the errors that are raised meanwhile, unless they name one themselves."""
    try:
        yield
    except BadInput as error:
        raise error.located(file) from None


def suggestion(name: str, known: Iterable[str], otherwise: str = "", *, most: int = 1, cutoff: float = 0.6) -> str:
    """Return advice for a name that is not `known`: the nearest ones that are.

    Args:
        name: The name.
        known: The names that there are.
        otherwise: What to say after it, and alone where no name is near; by default the whole list of names.
        most: How many near names to say.
        cutoff: How near they must be, from 0 to 1.
    """
    choices = list(known)
    near = get_close_matches(name, choices, most, cutoff)
    if otherwise:
        return f"did you mean {' or '.join(near)}?" if near else otherwise
    return f"{f'did you mean {near[0]}? ' if near else ''}known: {', '.join(choices)}"


def printable(text: str, keep: str = "") -> str:
    """Return text without characters that a terminal obeys or hides: control and format characters, line breaks.

    Each of them becomes an escape of JSON, so JSON text keeps its value.

    Args:
        text: The text.
        keep: Characters to leave as they are, such as line breaks in text of several lines.
    """
    unsafe = {ord(char): json.dumps(char)[1:-1] for char in set(text) - set(keep) if not _is_visible(char)}
    return text.translate(unsafe) if unsafe else text


def _is_visible(char: str) -> bool:
    """Return whether a terminal shows a character, and as itself; spaces of any width are visible."""
    return (char.isprintable() or category(char) == "Zs") and _INVISIBLE.match(char) is None
