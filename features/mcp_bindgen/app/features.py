"""The features of a contract's server: tools, prompts and resources, listed verbatim and answered by handlers."""

from __future__ import annotations

import inspect
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any, ClassVar, Literal, TypeAlias, get_origin

from pydantic_core import from_json, to_json

from mcp_bindgen.extensions.apps.metadata import contents_meta, shows_apps, tools_for, visibility
from mcp_bindgen.extensions.tasks.tools import ToolTask
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.access import Identity
from mcp_bindgen.runtime.protocol.errors import (
    INVALID_PARAMS,
    CapabilityMissing,
    InvalidParams,
    NotAnswered,
    ProtocolError,
)
from mcp_bindgen.runtime.protocol.extension import ExtensionResult
from mcp_bindgen.runtime.protocol.methods import Request
from mcp_bindgen.runtime.protocol.revision import Revision
from mcp_bindgen.runtime.protocol.routing import WrongResult, did_you_mean
from mcp_bindgen.runtime.protocol.uris import canonical
from mcp_bindgen.runtime.session.stateless_server import MISSING, single_errors

from .call_arguments import ABSENT
from .catalog import SCOPES, Entry, Kind
from .errors import InvalidArguments, InvalidResult, ResourceNotFound, ToolError
from .handlers import BoundContract, BoundHandler
from .types import adapter, structured_content

ArgumentErrors: TypeAlias = Literal["protocol", "result"]
"""What becomes of a call whose arguments do not fit: an error of the protocol, or a result with `isError`."""

Build: TypeAlias = Callable[[BoundHandler, Any], Any]
"""Makes the wire form of a result from what a handler returned."""

UPDATED = "notifications/resources/updated"
"""The notification that the contents of a resource are others now."""

_LONGEST_ERROR = 200  # characters of an error that a model reads
_LONGEST = 100  # characters of a name that is repeated


class Feature:
    """A base of the classes of a contract's servers, beside the generated `Server` of a revision.

    Attributes:
        contract: The contract and its handlers.
        package: The bindings of the revision.
        revisions: The bindings of all revisions that the contract is served in.
        argument_errors: What becomes of a call whose arguments do not fit; `None` for what the revision prefers.
        hide_errors: Whether callers of a tool that fails are kept from reading why; `None` for those with tokens.
        has_tasks: Whether tools can run as tasks.
        has_tasks_elsewhere: Whether they cannot, but can in another revision that is served.
        members: The lists of a contract that it answers from.
        extension: The module of the extension that it is about; it is in revisions only that have it.
    """

    contract: BoundContract
    package: ModuleType
    revisions: Sequence[ModuleType]
    argument_errors: ArgumentErrors | None
    hide_errors: bool | None
    has_tasks: bool = False
    has_tasks_elsewhere: bool = False
    members: ClassVar[tuple[str, ...]] = ()
    extension: ClassVar[str] = ""

    @classmethod
    def is_in(cls, contract: BoundContract) -> bool:
        """Return whether a contract has one of the lists, be it an empty one."""
        return any(member in contract.catalog.document for member in cls.members)

    def find(self, kind: Kind, name: str, ctx: Any) -> BoundHandler:
        """Return the handler for a name; raise `ProtocolError` (-32602) if there is none, with a near one."""
        handlers = self.contract.handlers[kind]
        found = handlers.get(name)
        if found is None or not self.is_for(found, ctx):
            allowed = (
                other
                for other, handler in handlers.items()
                if _may_use(ctx.identity, handler.entry) and self.is_for(handler, ctx)
            )
            raise ProtocolError(INVALID_PARAMS, f"Unknown {kind}: {name[:_LONGEST]}{did_you_mean(name, allowed)}")
        return found

    def is_for(self, handler: BoundHandler, ctx: Any) -> bool:
        """Tell whether there is an entry at all as far as the client of a request is concerned."""
        return True

    def result(self, method: str, wire: Any) -> Any:
        """Return the result of a method from its wire form; raise `InvalidResult` if the revision does not allow it."""
        try:
            return jsonrpc.typed_result(self.package.methods.METHODS[method], wire)
        except ProtocolError as error:
            raise InvalidResult(f"{self.package.types.__name__}: {error.message}") from None

    async def answer(self, method: str, handler: BoundHandler, arguments: Any, ctx: Any, build: Build) -> Any:
        """Call a handler and return the result of the method in the types of this revision.

        Args:
            method: The method's name on the wire.
            handler: The handler. It may return a whole result, in the types of any revision.
            arguments: Its typed arguments.
            ctx: The request.
            build: Makes the wire form of a result from anything else that the handler returns.

        Raises:
            InvalidResult: The handler returned what the contract or the revision does not allow.
        """
        returned = await handler.call(arguments, ctx)
        if isinstance(returned, ExtensionResult):
            return returned
        for package in (self.package, *self.revisions):
            request: Request[Any, Any, Any] = package.methods.METHODS[method]
            if isinstance(returned, (request.result, *request.alternatives)):
                return returned if package is self.package else self.result(method, jsonrpc.plain(returned))
        try:
            return self.result(method, build(handler, returned))
        except InvalidResult as error:
            if self.hide_errors:
                error.told = ""
            raise


def lists(
    method: str, member: str, fit: Callable[[Any, list[Entry]], list[Entry]] | None = None
) -> Callable[[Feature, Any, Any], Awaitable[Any]]:
    """Return the handler of a list method: its only page has the entries of the contract, verbatim.

    Args:
        method: The method.
        member: The member of a page that has the entries.
        fit: Returns those for a client of some capabilities, where that makes a difference.
    """

    async def handler(self: Feature, params: Any, ctx: Any) -> Any:
        if getattr(params, "cursor", None) is not None:
            raise InvalidParams(method, [{"path": "params.cursor", "problem": "there is no such page"}])
        page = jsonrpc.plain(self.result(method, {member: []}))
        entries = self.contract.catalog.document.get(member, [])
        return {**page, member: entries if fit is None else fit(ctx.peer_capabilities, entries)}

    return handler


class Tools(Feature):
    """Answers `tools/list` and `tools/call`."""

    members = ("tools",)
    list_tools = lists("tools/list", "tools", tools_for)

    def is_for(self, handler: BoundHandler, ctx: Any) -> bool:
        """Tell whether the client may know of a tool: those for apps alone are for clients that show them."""
        return "model" in visibility(handler.entry) or shows_apps(ctx.peer_capabilities)

    def tasks_of(self, name: str) -> ToolTask | None:
        """Return how a tool runs as a task; `None` where it never does."""
        handler = self.contract.handlers["tool"].get(name)
        return None if handler is None else handler.task

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        """Call a tool; the result of a tool that fails has `isError` and one line about the reason.

        Raises:
            ProtocolError: There is no such tool, or the arguments do not fit it.
            CapabilityMissing: The tool asked the client for a capability that was not declared, and the revision has an
                error that names it (-32021; MCP 2026-07-28, "Basic"). In other revisions the result has `isError`.
        """
        handler = self.find("tool", params.name, ctx)
        if handler.task is not None and handler.task.support == "required" and self.has_tasks_elsewhere:
            raise ProtocolError(INVALID_PARAMS, f"{params.name} runs as a task only, and MCP {ctx.revision} has none")
        try:
            arguments = self._arguments(handler, params.arguments or {})
            result = await self.answer("tools/call", handler, arguments, ctx, tool_result)
            _validate(handler, result)
            return result
        except ToolError as error:
            return self._failed(error.text)
        except (NotAnswered, ResourceNotFound) as error:
            return self._failed(str(error) or "there is no such resource")
        except Exception as error:
            if _lacks_capability(error) and MISSING not in ctx.negotiated.dispatcher.revision.errors:
                return self._failed(str(next(single_errors(error))))
            if _concerns_the_client(error):
                raise
            log.exception("the tool %r failed", params.name)
            hidden = ctx.identity is not None if self.hide_errors is None else self.hide_errors
            return self._failed(f"{params.name} failed" if hidden else f"{params.name} failed: {_one_line(error)}")

    def _failed(self, text: str) -> Any:
        """Return the result that tells a model what went wrong."""
        return self.result("tools/call", {"content": [_text(text)], "isError": True})

    def _arguments(self, handler: BoundHandler, wire: dict[str, Any]) -> Any:
        try:
            return handler.read(wire, "params.arguments")
        except InvalidArguments as error:
            revision: Revision = self.package.REVISION
            if self.argument_errors == "result" or (
                self.argument_errors is None and revision.argument_errors_in_results
            ):
                raise ToolError(error.message) from None
            raise


class Prompts(Feature):
    """Answers `prompts/list` and `prompts/get`."""

    members = ("prompts",)
    list_prompts = lists("prompts/list", "prompts")

    async def get_prompt(self, params: Any, ctx: Any) -> Any:
        """Return the messages of a prompt.

        Raises:
            ProtocolError: There is no such prompt, its arguments do not fit, or they name a resource that is missing.
            InvalidResult: The handler returned something that is no prompt.
        """
        handler = self.find("prompt", params.name, ctx)
        arguments = handler.read(params.arguments or {}, "params.arguments")
        try:
            return await self.answer("prompts/get", handler, arguments, ctx, _prompt_result)
        except ResourceNotFound as error:
            raise ProtocolError(INVALID_PARAMS, str(error) or "there is no such resource") from None


class Resources(Feature):
    """Answers `resources/list`, `resources/templates/list` and `resources/read`."""

    members = ("resources", "resourceTemplates")
    list_resources = lists("resources/list", "resources")
    list_resource_templates = lists("resources/templates/list", "resourceTemplates")

    async def read_resource(self, params: Any, ctx: Any) -> Any:
        """Read a resource of the contract, else one of the most specific template that matches.

        Raises:
            ProtocolError: There is no such resource.
            InvalidResult: The handler returned something that is no content.
        """
        found = next(self._candidates(params.uri), None)
        if found is not None:
            with suppress(ResourceNotFound):
                return await self.answer("resources/read", *found, ctx, partial(_contents, params.uri))
        raise not_found(self.package, params.uri)

    def _candidates(self, uri: str) -> Iterator[tuple[BoundHandler, Any]]:
        """Yield the handlers that may know a URI, with the variables in it."""
        exact = self.contract.handlers["resource"].get(canonical(uri))
        if exact is not None:
            yield exact, None
        for template, handler in self.contract.templates:
            found = template.match(uri)
            if found is not None:
                with suppress(InvalidArguments):
                    yield handler, handler.read(found, "params.uri")


class Subscriptions(Feature):
    """Answers `resources/subscribe` and `resources/unsubscribe`; in stateless revisions clients listen instead."""

    @classmethod
    def is_in(cls, contract: BoundContract) -> bool:
        """Return whether the contents of resources may change."""
        return UPDATED in contract.announces

    async def subscribe(self, params: Any, ctx: Any) -> Any:
        """Let a client follow a resource; raise `ProtocolError` if there is none."""
        if not self.contract.knows(params.uri):
            raise not_found(self.package, params.uri)
        return self.result("resources/subscribe", {})

    async def unsubscribe(self, params: Any, ctx: Any) -> Any:
        """Let a client no longer follow a resource."""
        return self.result("resources/unsubscribe", {})


def not_found(package: ModuleType, uri: str) -> ProtocolError:
    """Return the error that a revision has for a URI of nothing."""
    code = getattr(package.errors, "RESOURCE_NOT_FOUND", INVALID_PARAMS)
    return ProtocolError(code, "Resource not found", {"uri": uri})


def tool_result(handler: BoundHandler, returned: Any) -> dict[str, Any]:
    """Return the wire form of a result: structured content and its text, or content alone."""
    if handler.spec.output is None:
        return {"content": _items(handler, returned, _text)}
    wanted = handler.spec.output
    try:
        text = adapter(wanted).dump_json(returned, warnings="error").decode()
    except ValueError as error:
        said = f"returned {type(returned).__name__}, expected {getattr(wanted, '__name__', wanted)}"
        raise handler.invalid(said if _is_other(returned, wanted) else f"{said}: {error}") from None
    member = handler.spec.member
    if member is not None:
        text = f"{{{to_json(member).decode()}:{text}}}"
    return {"content": [_text(text)], "structuredContent": from_json(text)}


def _is_other(returned: object, wanted: Any) -> bool:
    """Tell whether a value is of another class than was wanted, so that nothing more need be said."""
    return inspect.isclass(wanted) and get_origin(wanted) is None and type(returned) is not wanted


def _validate(handler: BoundHandler, result: Any) -> None:
    """Raise `InvalidResult` unless the structured content of a final result fits the output schema, if there is one."""
    if handler.output is None or getattr(result, "content", None) is None or result.is_error:
        return
    structured = structured_content(result)
    if structured is ABSENT:
        raise handler.invalid("returned no structured content")
    for problem in handler.output.problems(structured, "structuredContent"):
        raise handler.invalid(f"returned {problem['path']}: {problem['problem']}")


def _prompt_result(handler: BoundHandler, returned: Any) -> dict[str, Any]:
    messages = _items(handler, returned, lambda text: {"role": "user", "content": _text(text)})
    return {**handler.described("description"), "messages": messages}


def _contents(uri: str, handler: BoundHandler, returned: Any) -> dict[str, Any]:
    if isinstance(returned, str):
        content = {"text": returned}
    elif isinstance(returned, bytes):
        content = {"blob": b64encode(returned).decode()}
    else:
        raise handler.invalid(f"returned {type(returned).__name__}")
    return {"contents": [{"uri": uri, **handler.described("mimeType"), **contents_meta(handler.entry), **content}]}


def _items(handler: BoundHandler, returned: object, from_text: Callable[[str], Any]) -> list[Any]:
    """Return the wire forms of what a handler returned, a text or a sequence of models; raise `InvalidResult`."""
    if isinstance(returned, str):
        return [from_text(returned)]
    if isinstance(returned, Sequence) and not isinstance(returned, bytes):
        return [jsonrpc.plain(item) for item in returned]  # pyright: ignore[reportUnknownVariableType]
    raise handler.invalid(f"returned {type(returned).__name__}")


def _may_use(identity: Identity | None, entry: Entry) -> bool:
    """Tell whether a caller may use an entry: whoever has no token is not asked for scopes."""
    return identity is None or identity.scopes.issuperset(entry.get(SCOPES, ()))


def _lacks_capability(error: Exception) -> bool:
    """Return whether a client did not declare the capabilities that a tool asked it for."""
    return all(isinstance(one, CapabilityMissing) and one.owner == "client" for one in single_errors(error))


def _concerns_the_client(error: Exception) -> bool:
    """Return whether an error, or one of a group, is for the protocol to say."""
    return any(isinstance(one, ProtocolError | CapabilityMissing) for one in single_errors(error))


def _one_line(error: Exception) -> str:
    """Return a short line about an error, without the folders of ours that it may name."""
    said = error.told if isinstance(error, WrongResult) else f"{type(error).__name__}: {error}"
    line = said.partition("\n")[0].rstrip(": ")
    return line if len(line) <= _LONGEST_ERROR else f"{line[:_LONGEST_ERROR]}..."


def _text(text: str) -> dict[str, str]:
    """Return a block of text in wire form."""
    return {"type": "text", "text": text}
