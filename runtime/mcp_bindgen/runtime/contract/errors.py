"""What can go wrong between a contract, the code that keeps it, and who relies on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import INVALID_PARAMS, ProtocolError

_SHOWN = 3


class ToolError(Exception):
    """A tool failed, and its words are for the model: the result has `isError`.

    Raise it in a tool; a typed client raises it when a tool did.

    Attributes:
        text: What to tell the model.
        result: The result that says so, on the side of the client.
    """

    def __init__(self, text: str, result: Any = None) -> None:
        super().__init__(text)
        self.text = text
        self.result = result


class ResourceNotFound(Exception):
    """There is no such resource. Raise it where a template matches a URI behind which there is nothing.

    It becomes the error that the revision of the request has for this.
    """


class InvalidArguments(ProtocolError):
    """-32602: the arguments of a tool or prompt are not what the contract says; `data` has each problem and its path.

    Args:
        name: Which tool or prompt.
        problems: Each with `path`, which leads from the params, and `problem`.
    """

    def __init__(self, name: str, problems: Sequence[dict[str, str]]) -> None:
        said = [f"{one['path'].removeprefix('params.')}: {one['problem']}" for one in problems[:_SHOWN]]
        more = ["..."] if len(problems) > _SHOWN else []
        super().__init__(INVALID_PARAMS, f"Invalid arguments of {name}: {'; '.join(said + more)}", list(problems))


class BrokenPromise(Exception):
    """The server's own code gave something that the contract, or the revision, does not allow; a client sees -32603."""


class UnexpectedResult(Exception):
    """A tool succeeded, but its structured result is missing or is not of the promised type."""
