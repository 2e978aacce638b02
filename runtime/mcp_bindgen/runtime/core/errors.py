"""Errors as JSON-RPC 2.0 sends them (section 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_CLIENT_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022


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

    def __init__(self, method: str, data: Any = None) -> None:
        super().__init__(METHOD_NOT_FOUND, f"Method not found: {method}", data)


class InvalidParams(ProtocolError):
    """The params do not fit the method; `data` lists what is wrong and where."""

    def __init__(self, method: str, problems: list[dict[str, str]]) -> None:
        first = problems[0]
        super().__init__(INVALID_PARAMS, f"Invalid params of {method}: {first['path']}: {first['problem']}", problems)


class HeaderMismatch(ProtocolError):
    """HTTP headers that are missing, malformed or at odds with the body."""

    def __init__(self, reason: str, data: Any = None) -> None:
        super().__init__(HEADER_MISMATCH, f"Header mismatch: {reason}", data)


class MissingClientCapability(ProtocolError):
    """The request needs what its client did not declare; `data` has it in the form of capabilities.

    Args:
        paths: The dotted names of what is missing.
    """

    def __init__(self, *paths: str) -> None:
        tree: dict[str, Any] = {}
        for path in paths:
            node = tree
            for name in path.split("."):
                node = node.setdefault(name, {})
        super().__init__(
            MISSING_CLIENT_CAPABILITY, f"Missing client capability: {', '.join(paths)}", {"requiredCapabilities": tree}
        )


class UnsupportedVersion(ProtocolError):
    """The request is in a revision that is not served here; `data` names those that are."""

    def __init__(self, requested: str, supported: Sequence[str]) -> None:
        super().__init__(
            UNSUPPORTED_VERSION,
            f"Unsupported protocol version: {requested}",
            {"supported": list(supported), "requested": requested},
        )


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


class SessionLost(ConnectionClosed):
    """The server has forgotten this session; a new handshake begins another one."""


class Refused(ConnectionClosed):
    """A server answered with an HTTP status that says no, and with nothing of the protocol.

    Attributes:
        status: The status.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class RequestTimeout(Exception):
    """No answer came in time; the other side was told that it is no longer wanted."""


class UnsupportedRevision(Exception):
    """The two sides have no revision in common.

    Attributes:
        revision: The one that the server speaks, or the first of them.
        revisions: All that it says it speaks.
    """

    def __init__(self, ours: str, *theirs: str) -> None:
        spoken = " or ".join(theirs)
        super().__init__(f"the server speaks {spoken}, this client {ours}; use the client of that revision")
        self.revision = theirs[0] if theirs else ""
        self.revisions = theirs
