"""The errors of contracts: raised by handlers, sent by servers, raised by typed clients."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_bindgen.runtime.protocol.errors import INVALID_PARAMS, ProtocolError
from mcp_bindgen.runtime.protocol.routing import WrongResult

_SHOWN = 3


class ToolError(Exception):
    """A tool failed, and the model should read the reason: the result has `isError`.

    Raise it in the handler of a tool; typed clients raise it when a tool failed.

    Attributes:
        text: The reason.
        result: The result, on the side of the client.
    """

    def __init__(self, text: str, result: object = None) -> None:
        super().__init__(text)
        self.text = text
        self.result = result


class ResourceNotFound(Exception):
    """There is no such resource: raise it in the handler of a template for a URI without a resource.

    The client receives the error that its revision defines for this.
    """


class InvalidArguments(ProtocolError):
    """-32602: the arguments of a tool or prompt break the contract; `data` has each problem and its path.

    Args:
        name: The name of the tool or prompt.
        problems: Each with `path`, which begins at the params, and `problem`.
    """

    def __init__(self, name: str, problems: Sequence[dict[str, str]]) -> None:
        lines = [f"{one['path'].removeprefix('params.')}: {one['problem']}" for one in problems[:_SHOWN]]
        more = ["..."] if len(problems) > _SHOWN else []
        lines.sort(key=lambda one: one.endswith("?"))
        super().__init__(INVALID_PARAMS, f"Invalid arguments of {name}: {'; '.join(lines + more)}", list(problems))


class InvalidResult(WrongResult):
    """A handler returned a value that the contract, or the revision, does not allow: see `WrongResult`."""


class UnexpectedResult(Exception):
    """A tool succeeded, but its structured result is missing or of another type."""


class BadFunction(ValueError):
    """A function cannot be an entry of a contract.

    Attributes:
        problem: The problem.
        fix: An instruction for the author of the function.
        place: File and line of the function.
    """

    def __init__(self, problem: str, fix: str, place: str) -> None:
        super().__init__(f"{place}: {problem}; {fix}")
        self.problem = problem
        self.fix = fix
        self.place = place
