"""The one error that bad input raises, everywhere in the generator."""

from __future__ import annotations


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
        return f"{line}; {self.fix}" if self.fix else line
