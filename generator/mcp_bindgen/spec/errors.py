"""The one error that bad input raises, everywhere in the generator."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


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
        """The same error, with the file named if it was not known deeper down."""
        if self.file is not None:
            return self
        return BadInput(self.message, file=file, pointer=self.pointer, fix=self.fix)

    def __str__(self) -> str:
        place = (self.file or "") + (f"#{self.pointer}" if self.pointer is not None else "")
        line = f"{place}: {self.message}" if place else self.message
        return _one_line(f"{line}; {self.fix}" if self.fix else line)


@contextmanager
def locating(file: object) -> Generator[None]:
    """Names `file` in the errors that are raised meanwhile, unless they name one themselves."""
    try:
        yield
    except BadInput as error:
        raise error.located(file) from None


def _one_line(text: str) -> str:
    """`text` with line breaks, and whatever else a terminal cannot show, escaped: input has strange names at times."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
