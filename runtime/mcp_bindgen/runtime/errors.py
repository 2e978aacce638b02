"""Errors as JSON-RPC 2.0 sends them (section 5.1)."""

from __future__ import annotations

from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class ProtocolError(Exception):
    """An error that is sent to the other side, or that came from there.

    Attributes:
        code: The JSON-RPC error code.
        message: One short sentence.
        data: More about it: any JSON value, or `None`.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class MethodNotFound(ProtocolError):
    """The method does not exist in this revision, or this side does not offer it."""

    def __init__(self, method: str) -> None:
        super().__init__(METHOD_NOT_FOUND, f"Method not found: {method}")


class InvalidParams(ProtocolError):
    """The params do not fit the method; `data` lists what is wrong and where."""

    def __init__(self, method: str, problems: list[dict[str, str]]) -> None:
        first = problems[0]
        super().__init__(INVALID_PARAMS, f"Invalid params of {method}: {first['path']}: {first['problem']}", problems)


class UnexpectedAnswer(Exception):
    """A request was answered by something that its stub does not return.

    Attributes:
        answer: What came.
    """

    def __init__(self, method: str, answer: object) -> None:
        super().__init__(f"{method} was answered by {type(answer).__name__}; use request() to handle it")
        self.answer = answer


class ConnectionClosed(Exception):
    """The connection ended before the answer came; the message says why."""


class CapabilityMissing(Exception):
    """The other side did not declare what this needs, so nothing was sent."""

    def __init__(self, method: str, capability: str) -> None:
        owner, _, path = capability.partition(".")
        super().__init__(f"{method} needs the capability {path!r}, which the {owner} did not declare")
        self.capability = capability


class RequestTimeout(Exception):
    """No answer came in time; the other side was told that it is no longer wanted."""


class UnsupportedRevision(Exception):
    """The two sides have no revision in common.

    Attributes:
        revision: The one that the server speaks.
    """

    def __init__(self, ours: str, revision: str) -> None:
        super().__init__(f"the server speaks {revision}, this client {ours}; use the client of that revision")
        self.revision = revision
