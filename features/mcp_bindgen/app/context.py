"""Context of the functions of an `App`."""

from __future__ import annotations

from typing import Any, Generic

from typing_extensions import TypeVar

from mcp_bindgen.runtime.session import context

State = TypeVar("State", default=Any)


class Context(context.Context, Generic[State]):
    """Context of a request; also sends requests and notifications to its sender.

    Attributes:
        state: The value that the lifespan of the app yielded; `Context[Database]` is the context with its type.
        call: The call of the entry that the function handles.
        server: The server that answers the request.
    """

    state: State
    call: Any
    server: Any
