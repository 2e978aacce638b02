"""Define errors as JSON-RPC 2.0 sends them (section 5.1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from ..model.json_types import is_object

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
TOO_MANY_REQUESTS = -32000
"""The first of the codes that JSON-RPC leaves to implementations (section 5.1)."""
UNAVAILABLE = "unavailable"
"""The member `error` in the data of `ServerUnavailable`: MCP allows no new codes for servers."""


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


class TooManyRequests(ProtocolError):
    """-32000: a limit is reached, so the request was refused before it began; it may be sent again.

    Over HTTP this is a 429 with `Retry-After`, wherever the response has not begun.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(TOO_MANY_REQUESTS, reason)


class ServerUnavailable(ProtocolError):
    """-32603: the server serves no client at the moment, because it is stopping or its store is unavailable.

    Over HTTP this is a 503 with `Retry-After`. The store may have failed after a handler began, so send a request again
    only if that does no harm.

    Attributes:
        retry_after: Seconds after which a client may try again; always 5.
    """

    retry_after = 5

    def __init__(self, reason: str) -> None:
        super().__init__(INTERNAL_ERROR, reason, {"error": UNAVAILABLE})


def received(code: int, message: str, data: Any) -> ProtocolError:
    """Return the error that another side sent, in the class that its data names."""
    if code == INTERNAL_ERROR and is_object(data) and data.get("error") == UNAVAILABLE:
        return ServerUnavailable(message)
    return ProtocolError(code, message, data)


class SessionRequired(ProtocolError):
    """-32600: an operation needs a session, and the endpoint keeps none: `HttpApp(..., sessions=False)`."""

    def __init__(self, what: str) -> None:
        super().__init__(INVALID_REQUEST, f"{what} needs a session, and this endpoint keeps none (sessions=False)")


class MethodNotFound(ProtocolError):
    """-32601: the method does not exist in this revision, or this side does not offer it."""

    def __init__(self, method: str, data: Any = None) -> None:
        super().__init__(METHOD_NOT_FOUND, f"Method not found: {method}", data)


class NotInitialized(ProtocolError):
    """A message came before the handshake; probing clients send one on purpose."""

    def __init__(self) -> None:
        super().__init__(INVALID_REQUEST, "Invalid request: the connection is not initialized")


class InvalidParams(ProtocolError):
    """-32602: the params do not fit the method; `data` lists the problems, each with `path` and `problem`."""

    def __init__(self, method: str, problems: list[dict[str, str]]) -> None:
        first = problems[0]
        super().__init__(INVALID_PARAMS, f"Invalid params of {method}: {first['path']}: {first['problem']}", problems)


class UnexpectedAnswer(Exception):
    """A request was answered by something that its stub does not return.

    Attributes:
        answer: The result.
    """

    def __init__(self, method: str, answer: object) -> None:
        super().__init__(f"{method} was answered by {type(answer).__name__}; use request() to handle it")
        self.answer = answer


class ConnectionClosed(Exception):
    """The connection ended before the answer came; the message says why."""


class NotAnswered(Exception):
    """A question to the user has no answer that can be used.

    Attributes:
        action: `decline` if the user refused, `cancel` if they left, `invalid` if something else came.
    """

    def __init__(self, message: str, action: Literal["decline", "cancel", "invalid"], problem: str = "") -> None:
        verb = {"decline": "was declined", "cancel": "was cancelled", "invalid": f"has an invalid answer: {problem}"}
        super().__init__(f"the question {message!r} {verb[action]}")
        self.action = action


class CapabilityMissing(Exception):
    """A side did not declare a needed capability, so nothing was sent.

    Args:
        method: The method.
        capability: The side that would declare it, and its path.
        revision: The revision, if it does not define the capability.

    Attributes:
        owner: The side: `client` or `server`.
        capability: The side, and the names that lead to it.
    """

    def __init__(self, method: str, capability: Sequence[str], revision: str | None = None) -> None:
        self.capability: tuple[str, ...] = tuple(capability)
        owner, first, *rest = self.capability
        lack = f"the {owner} did not declare" if revision is None else f"MCP {revision} does not have"
        name = ".".join(rest if first == "extensions" else (first, *rest))
        noun = "extension" if first == "extensions" else "capability"
        super().__init__(f"{method} needs the {noun} {name!r}, which {lack}")
        self.owner = owner


class SessionLost(ConnectionClosed):
    """The server has lost this session; a new handshake begins a new one."""


class Refused(ConnectionClosed):
    """A server answered with an HTTP status that says no, and with nothing of the protocol.

    Attributes:
        status: The status.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class AuthorizationError(Exception):
    """Authorization failed; the message states the reason and the fix, and no secret.

    Attributes:
        is_temporary: True if a later attempt may succeed without any change.
    """

    def __init__(self, reason: str, *, is_temporary: bool = False) -> None:
        super().__init__(reason)
        self.is_temporary = is_temporary


class LoginRequired(AuthorizationError):
    """A user has to log in before a request is sent again.

    Attributes:
        log_in: Function that has the user log in, which takes minutes; see `LogIn`.
    """

    def __init__(self, log_in: Callable[[], Awaitable[bool]]) -> None:
        super().__init__("the server still requires a login")
        self.log_in = log_in


class RequestTimeout(Exception):
    """No response came in time; the request was cancelled."""


class UnsupportedRevision(Exception):
    """The two sides have no revision in common.

    Attributes:
        revision: First revision that the server names; empty if it names none.
        revisions: All revisions that the server names.
    """

    def __init__(self, ours: str, *theirs: str) -> None:
        if theirs:
            reason = f"the server speaks {' or '.join(theirs)}, this client {ours}; use the client of that revision"
        else:
            older = "the server speaks an older revision, which begins with a handshake"
            reason = f"{older}, this client {ours}; use connect(), which finds out, or the client of an older revision"
        super().__init__(reason)
        self.revision: str = theirs[0] if theirs else ""
        self.revisions = theirs


class StoreUnavailable(ProtocolError):
    """A store of sessions, events or tasks is unreachable; the store has logged the cause."""

    def __init__(self, message: str = "The store cannot be reached at the moment; try again later") -> None:
        super().__init__(INTERNAL_ERROR, message)
