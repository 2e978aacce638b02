"""The base of typed clients, and functions for the arguments and results of their calls. Needs no validator."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar, get_args, overload

from pydantic import BaseModel
from pydantic_core import from_json, to_json
from typing_extensions import get_original_bases

from mcp_bindgen.runtime.connecting import TIMEOUT
from mcp_bindgen.runtime.model.scalars import Json
from mcp_bindgen.runtime.session.client import Client

from .errors import ToolError, UnexpectedResult
from .validation import structured_content, typed
from .values import ABSENT, TypeForm, is_json

if TYPE_CHECKING:
    from mcp_bindgen.runtime.session.targets import Target

C = TypeVar("C", bound=Client)
R = TypeVar("R")
T = TypeVar("T")


class HasAttach(Protocol):
    """Guard of the requests of a client, such as `lock.Guard`."""

    def attach(self, client: C) -> C:
        """Guard a client, and return it."""
        ...


class ContractClient(Generic[C]):
    """The base of typed clients of one server, with a method for each of its tools, prompts and resource templates.

    A generated class names the client of its revision: `class Weather(ContractClient[v2025_11_25.Client])`.

    Args:
        client: A connected client, whose handlers answer the requests of the server.

    Attributes:
        client: The client, for all other methods.
    """

    _client_class: ClassVar[type[Any]]

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        for base in get_original_bases(cls):
            for argument in get_args(base):
                if isinstance(argument, type) and issubclass(argument, Client):
                    cls._client_class = argument

    def __init__(self, client: C) -> None:
        self.client = client

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        target: Target,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = TIMEOUT,
        guard: HasAttach | None = None,
    ) -> AsyncGenerator[Self]:
        """Connect a new client for as long as the `async with` block lasts.

        Args:
            target: A URL, a command line or its list of arguments, an entry of an `mcpServers` file, or a transport.
            headers: HTTP headers to send with each request.
            timeout: Seconds until connecting fails; `None` for no limit.
            guard: Guard of all requests, such as `lock.Guard("mcp.lock", "weather")`: calls that do not agree with the
                lock raise `NotAsLocked`.
        """
        client = cls._client_class()
        if guard is not None:
            guard.attach(client)
        async with client.connected(target, headers=headers, timeout=timeout) as connected:
            yield cls(connected)


def succeeded(result: R) -> R:
    """Return the result of a tool, unless it failed.

    Raises:
        ToolError: The tool failed.
    """
    if getattr(result, "is_error", None):
        text = "\n".join(block.text for block in getattr(result, "content", ()) if block.type == "text")
        raise ToolError(text or "the tool failed without an error message", result)
    return result


@overload
def structured(result: BaseModel, kind: type[T]) -> T: ...


@overload
def structured(result: BaseModel, kind: TypeForm) -> Any: ...


def structured(result: BaseModel, kind: TypeForm) -> Any:
    """Return the structured content of a tool's result in its type.

    Args:
        result: The result.
        kind: The type of its structured content.

    Raises:
        ToolError: The tool failed.
        UnexpectedResult: The structured content is missing, or of another type.
    """
    content = structured_content(succeeded(result))
    if content is ABSENT:
        raise UnexpectedResult("the tool gave no structured content")
    return typed(
        kind, content, "structuredContent", lambda found: UnexpectedResult("{path}: {problem}".format(**found[0]))
    )


def arguments(values: Mapping[str, object], nullable: Collection[str] = ()) -> dict[str, Json]:
    """Return the arguments of a tool in wire form, without absent ones.

    Args:
        values: Wire name -> value; models and lists of models are allowed.
        nullable: The names for which `None` means `null`; such an argument is absent only as `ABSENT`.

    Raises:
        ValueError: A number is NaN or an infinity.
    """
    absent = {name for name, value in values.items() if value is ABSENT or (value is None and name not in nullable)}
    return whole({name: value for name, value in values.items() if name not in absent})


def whole(values: Mapping[str, object] | BaseModel) -> dict[str, Json]:
    """Return the arguments of a tool that takes them as one value, in wire form.

    Raises:
        ValueError: A number is NaN or an infinity.
    """
    try:
        wire: dict[str, Json] = from_json(to_json(values), allow_inf_nan=False)
    except ValueError:
        named = (f"the argument {name!r}" for name, value in dict(values).items() if not is_json(value))
        raise ValueError(f"{next(named, 'an argument')} contains NaN or an infinity, which JSON lacks") from None
    return wire


def texts(values: Mapping[str, str | None]) -> dict[str, str]:
    """Return the arguments of a prompt, wire name -> text, without values that are `None`."""
    return {name: value for name, value in values.items() if value is not None}
