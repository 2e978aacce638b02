"""The features of a contract's servers: lists are served verbatim, calls are answered by handlers."""

from __future__ import annotations

import re
import sys
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from traceback import extract_tb
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, cast

from pydantic_core import PydanticSerializationError, from_json, to_json

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.base import Model
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.access import Identity
from mcp_bindgen.runtime.protocol.errors import (
    INVALID_PARAMS,
    CapabilityMissing,
    NotAnswered,
    ProtocolError,
)
from mcp_bindgen.runtime.protocol.extension import ExtensionResult
from mcp_bindgen.runtime.protocol.methods import RequestMethod
from mcp_bindgen.runtime.protocol.request_scope import Endpoint
from mcp_bindgen.runtime.protocol.routing import WrongResult, did_you_mean
from mcp_bindgen.runtime.session.context import Context
from mcp_bindgen.runtime.session.server import Server

from .catalog import KINDS, Entry, Kind
from .context import Call, Next, entered, through
from .context import Context as AppContext
from .errors import InvalidArguments, InvalidResult, ResourceNotFound, ToolError
from .handlers import BoundContract, BoundHandler, key_of
from .values import content_block, type_name

if TYPE_CHECKING:
    from mcp_bindgen.extensions.tasks.service import Tasks
    from mcp_bindgen.extensions.tasks.tools import ToolTask

ArgumentErrors: TypeAlias = Literal["protocol", "result"]
"""The response to a call with invalid arguments: an error of the protocol, or a result with `isError`."""

Lifespan: TypeAlias = Callable[[], AbstractAsyncContextManager[Any]]

Build: TypeAlias = Callable[[BoundHandler, Any], Any]
"""Makes a result from the value that a handler returned."""

UPDATED = "notifications/resources/updated"
"""The notification that the contents of a resource changed."""

_UNEXPECTED = re.compile(
    r"Expected `(?P<wanted>[^`]+)`.*?\[(field_name='(?P<field>\w+)')?.*?input_type=(?P<found>\w+)\]"
)
"""pydantic's warning about a value of another type than the annotation says."""

_MAX_ERROR_CHARACTERS = 200  # of an error that a model reads
_MAX_NAME_CHARACTERS = 100  # of a name that is repeated


class Page(Protocol):
    """The params of a list method."""

    cursor: str | None


class Named(Protocol):
    """The params of a method that calls an entry by its name."""

    name: str
    arguments: Mapping[str, Any] | None


class Settings:
    """The settings of a contract's servers; see `Contract` and `App`."""

    revisions: Sequence[ModuleType] | None = None
    info: Mapping[str, Any] | None = None
    instructions: str | None = None
    argument_errors: ArgumentErrors | None = None
    hide_errors: bool | None = None
    hide_forbidden: bool | None = None
    page_size: int | None = None
    tasks: Tasks | None = None


class Feature(Server):
    """A base of the classes of a contract's servers; it precedes the generated `Server` of a revision.

    Attributes:
        contract: The contract and its handlers.
        states: App -> the value of its lifespan.
        package: The bindings of the revision.
        packages: The names of the bindings of all revisions of the contract.
        settings: The settings of the servers.
        announce: Sends a notification of a change: see `ContractServers`.
        own_tasks: The service that runs tools as tasks; `None` if no tool is a task.
        has_tasks_elsewhere: True if tools cannot run as tasks, but can in another revision that is served.
        extension: The module of the extension to which the feature belongs; revisions without the extension lack it.
    """

    contract: BoundContract
    states: Mapping[Any, Any] = MappingProxyType({})
    package: ModuleType
    packages: Sequence[str] = ()
    settings: Settings
    announce: Callable[..., None]
    own_tasks: Tasks | None = None
    has_tasks_elsewhere: bool = False
    extension: ClassVar[str] = ""

    def find(self, kind: Kind, name: str, ctx: Context) -> BoundHandler:
        """Return the handler for a name; raise `ProtocolError` (-32602), which suggests a similar name."""
        handlers = self.contract.handlers[kind]
        found = handlers.get(name)
        if found is not None and self.offers(found, ctx):
            return found
        shown = (other for other, one in handlers.items() if self.offers(one, ctx, listed=True))
        hint = did_you_mean(name, (other for other in shown if other != name))
        raise ProtocolError(INVALID_PARAMS, f"Unknown {kind}: {name[:_MAX_NAME_CHARACTERS]}{hint}")

    def offers(self, handler: BoundHandler, ctx: Context, *, listed: bool = False) -> bool:
        """Return True if an entry is offered to the sender of a request.

        Args:
            handler: The handler of the entry.
            ctx: The context of the request.
            listed: True for lists, searches and hints; `hide_forbidden` decides about entries that the sender may not
                use. Calls by name are compared with scopes elsewhere.
        """
        if not handler.is_for_model:
            from mcp_bindgen.extensions.apps import shows_apps  # few tools are for apps alone

            if not shows_apps(ctx.peer_capabilities):
                return False
        if listed:
            return self.shows(handler, ctx.identity, ctx.link.endpoint, ctx.wire_revision)
        return handler.is_enabled(ctx.identity) and (ctx.identity is None or handler.admits(ctx.identity))

    def shows(self, handler: BoundHandler, identity: Identity | None, endpoint: Endpoint, revision: str) -> bool:
        """Return True if lists for a caller have an entry.

        Args:
            handler: The handler of the entry.
            identity: The caller; `None` without token.
            endpoint: The endpoint, which knows the scopes of calls.
            revision: The revision that the caller speaks.
        """
        hides, kind = self.settings.hide_forbidden, handler.spec.kind
        if identity is None or hides is False or not handler.is_enabled(identity):
            return handler.is_enabled(identity)
        compares_scopes = hides or not identity.issuer  # the client of an issuer's token can get more scopes
        operation = KINDS[kind].used, key_of(kind, handler.spec.name)
        return handler.admits(identity) and (not compares_scopes or endpoint.allows(identity, revision, [operation]))

    async def through(self, handler: BoundHandler, call: Call, method: str, work: Next) -> Any:
        """Return the result of a call through the middleware of the apps that offer the entry.

        Args:
            handler: The handler of the entry.
            call: The call.
            method: The method's name on the wire.
            work: Answers the call, in wire form or in the types of the revision.
        """
        if not handler.layers:
            return await work(call)
        call.ctx.server = self
        if not any(owner.middlewares for owner, _ in handler.layers):
            return await work(entered(self.states, *handler.layers[-1], call))

        async def in_wire_form(call: Call) -> Any:
            return jsonrpc.plain(await work(call))

        return self.result(method, await through(handler.layers, self.states, call, in_wire_form))

    def result(self, method: str, wire: dict[str, Any]) -> Any:
        """Return the result of a method from its wire form; raise `InvalidResult` if the revision does not allow it."""
        try:
            return jsonrpc.typed_result(self.package.methods.METHODS[method], wire)
        except ProtocolError as error:
            raise InvalidResult(f"{self.package.types.__name__}: {error.message}") from None

    def reason(self, name: str, error: Exception, ctx: Context) -> str:
        """Return the line that the caller of a failed handler reads."""
        is_hidden = ctx.identity is not None if self.settings.hide_errors is None else self.settings.hide_errors
        return f"{name} failed" if is_hidden else f"{name} failed: {_one_line(error)}"

    async def answer(self, method: str, handler: BoundHandler, arguments: object, ctx: Context, build: Build) -> Any:
        """Call a handler and return the result of the method in this revision.

        Args:
            method: The method's name on the wire.
            handler: The handler. It may return a whole result, in the types of any revision.
            arguments: Its typed arguments.
            ctx: The context of the request.
            build: Makes the result from any other value that the handler returns.

        Raises:
            InvalidResult: The handler returned a value that the contract or the revision does not allow.
        """
        try:
            returned = await handler.call(arguments, ctx)
        except BaseException as error:
            from mcp_bindgen.runtime.session.rounds import InputRequired, other_than_required  # only if a handler fails

            other = other_than_required(error)
            group = cast("BaseExceptionGroup[BaseException]", error) if isinstance(error, BaseExceptionGroup) else None
            if group is not None and group.subgroup(lambda one: type(one) is InputRequired):
                raise (other or InputRequired()) from None  # middleware sees no group of questions
            if other is None or isinstance(other, Exception | CancelledError | GeneratorExit | KeyboardInterrupt):
                raise
            did = f"called sys.exit({other.code!r})" if isinstance(other, SystemExit) else f"raised {other!r}"
            raise RuntimeError(f"the handler {did}").with_traceback(error.__traceback__) from error
        if isinstance(returned, ExtensionResult):
            return returned
        try:
            for package in self._packages() if isinstance(returned, Model) else ():
                request: RequestMethod[Any, Any, Any] = package.methods.METHODS[method]
                if isinstance(returned, (request.result, *request.alternatives)):
                    return returned if package is self.package else self.result(method, jsonrpc.plain(returned))
            return build(handler, returned)
        except (InvalidResult, PydanticSerializationError) as error:
            no_json = f"returned a value that JSON cannot express: {error}"
            raise (error if isinstance(error, InvalidResult) else handler.invalid(no_json)) from None

    def _packages(self) -> Iterator[ModuleType]:
        """Yield the bindings in whose types a result may be: of this revision, and others that are in use."""
        yield self.package
        yield from (sys.modules[name] for name in self.packages if name in sys.modules)


ListHandler: TypeAlias = "Callable[[Feature, Page, Context], Awaitable[Any]]"


def lists(kind: Kind, fit: Callable[[Mapping[str, Any], list[Entry]], list[Entry]] | None = None) -> ListHandler:
    """Return the handler of a list method: its pages have the entries of the contract, verbatim.

    Args:
        kind: The kind of the entries.
        fit: Returns the entries for the capabilities of a client, if they make a difference.
    """
    member, key, method = KINDS[kind].member, KINDS[kind].key, KINDS[kind].listed

    async def handler(self: Feature, params: Page, ctx: Context) -> Any:
        page = jsonrpc.plain(self.result(method, {member: []}))
        entries: list[Entry] = self.contract.catalog.document.get(member, [])
        shown = self.contract.listed_tools if kind == "tool" else ()
        entries = [entry for entry in entries if not shown or entry["name"] in shown]
        entries = [entry for entry in entries if self.offers(self.contract.find(kind, entry), ctx, listed=True)]
        if params.cursor is not None or self.settings.page_size is not None:
            from .pages import cut  # few lists have pages

            entries, following = cut(method, key, entries, params.cursor, self.settings.page_size)
            page |= following
        return {**page, member: entries if fit is None else fit(ctx.peer_capabilities, entries)}

    return handler


def _tools_for(capabilities: Mapping[str, Any], tools: list[Entry]) -> list[Entry]:
    """Return the tools for a client; metadata of apps are for clients that show apps."""
    if not any("_meta" in tool for tool in tools):
        return tools
    from mcp_bindgen.extensions.apps import tools_for  # few tools have metadata

    return tools_for(capabilities, tools)


class Tools(Feature):
    """Answers `tools/list` and `tools/call`."""

    list_tools: ListHandler = lists("tool", _tools_for)

    def tasks_of(self, name: str, ctx: Context) -> ToolTask | None:
        """Return the way a tool runs as a task, or None if it never does, or is not offered to the sender."""
        handler = self.contract.handlers["tool"].get(name)
        return None if handler is None or not self.offers(handler, ctx) else handler.task

    async def call_tool(self, params: Named, ctx: Context) -> Any:
        """Call a tool; the result of a tool that fails has `isError` and one line about the reason.

        Raises:
            ProtocolError: There is no such tool, or the arguments do not fit it.
            CapabilityMissing: The tool sent a request for which the client lacks the capability, and the revision has
                an error for this (-32021; MCP 2026-07-28, "Overview"). In other revisions the result has `isError`.
        """
        handler = self.find("tool", params.name, ctx)
        if self.has_tasks_elsewhere and handler.task is not None and handler.task.support == "required":
            raise ProtocolError(INVALID_PARAMS, f"{params.name} runs as a task only, and MCP {ctx.revision} has none")

        async def work(call: Call) -> Any:
            arguments = handler.read(call.arguments, "params.arguments")
            result = await self.answer("tools/call", handler, arguments, ctx, self._result)
            if handler.output is not None:
                handler.output.check(result, handler.invalid)
            return result

        call = Call("tool", params.name, params.arguments or {}, cast(AppContext, ctx))
        try:
            return await self.through(handler, call, "tools/call", work)
        except InvalidArguments as found:
            error = InvalidArguments(params.name, found.data)  # a mounted app has another name for the tool
            default = "result" if self.package.REVISION.argument_errors_in_results else "protocol"
            if (self.settings.argument_errors or default) == "protocol":
                raise error from None
            return self._failed(error.message)
        except ToolError as error:
            return self._failed(error.text)
        except (NotAnswered, ResourceNotFound) as error:
            return self._failed(str(error) or "there is no such resource")
        except Exception as error:
            from mcp_bindgen.runtime.session.stateless_server import MISSING, single_errors  # only if a tool fails

            errors = list(single_errors(error))
            has_code = ctx.negotiated is not None and MISSING in ctx.negotiated.dispatcher.revision.errors
            if not has_code and all(isinstance(one, CapabilityMissing) and one.owner == "client" for one in errors):
                return self._failed(str(errors[0]))
            if any(isinstance(one, ProtocolError | CapabilityMissing) for one in errors):
                raise
            log.exception("the tool %r failed: %s", params.name, for_author(handler, error))
            return self._failed(self.reason(params.name, error, ctx))

    def _result(self, handler: BoundHandler, returned: object) -> Any:
        """Return the result in wire form; it is checked against the revision if it may be invalid there."""
        wire = tool_result(handler, returned)
        is_valid = type(returned) is str if handler.spec.output is None else is_object(wire["structuredContent"])
        return wire if is_valid else self.result("tools/call", wire)

    def _failed(self, text: str) -> Any:
        """Return the result that tells a model the reason of a failure."""
        return self.result("tools/call", {"content": [text_block(text)], "isError": True})


def tool_result(handler: BoundHandler, returned: object) -> dict[str, Any]:
    """Return the wire form of a result: structured content and its text, or content alone."""
    wanted = handler.spec.output
    if wanted is None:
        return {"content": items(handler, returned, text_block)}
    from .validation import written  # the first structured result needs it

    try:
        text = written(wanted, returned)
    except ValueError as error:
        found, inner = type(returned).__name__, _UNEXPECTED.search(str(error))
        problem = f"returned {found}, expected {type_name(wanted)}"
        if inner is not None and inner["found"] != found:
            problem += f" ({inner['field'] or 'a part'} is {inner['found']}, not {inner['wanted']})"
        more = f": {error}" if inner is None else "; correct the value or the annotation"
        raise handler.invalid(problem + more) from None
    member = handler.spec.member
    if member is not None:
        text = f"{{{to_json(member).decode()}:{text}}}"
    return {"content": [text_block(text)], "structuredContent": from_json(text)}


def items(handler: BoundHandler, returned: object, from_text: Callable[[str], Any]) -> list[Any]:
    """Return the wire forms of a text or a sequence of models; raise `InvalidResult` for any other value."""
    if isinstance(returned, Sequence):
        items = [returned] if isinstance(returned, str | bytes) else cast(Sequence[object], returned)
        return [from_text(one) if isinstance(one, str) else content_block(one) for one in items]
    fix = "expected str or a list of texts and models of the protocol; correct the value or the annotation"
    raise handler.invalid(f"returned {type(returned).__name__}, {fix}")


def _one_line(error: Exception) -> str:
    """Return a short line about an error, without the paths of folders."""
    text = error.told if isinstance(error, WrongResult) else f"{type(error).__name__}: {error}"
    line = text.partition("\n")[0].rstrip(": ")
    return line if len(line) <= _MAX_ERROR_CHARACTERS else f"{line[:_MAX_ERROR_CHARACTERS]}..."


def for_author(handler: BoundHandler, error: Exception) -> str:
    """Return a line about an error with the line of the author's file that raised it."""
    if isinstance(error, WrongResult):
        return str(error) if handler.place in str(error) else f"{error} ({handler.place})"
    file = handler.place.rpartition(":")[0]
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == file]
    place = f"{file}:{lines[-1]}" if lines else handler.place
    fix = "raise mcp_bindgen.app.ToolError to tell callers a reason"
    if "coroutine" in str(error):
        fix = "did you forget await?"
    return f"{type(error).__name__}: {error} ({place}); {fix}"


def text_block(text: str) -> dict[str, str]:
    """Return a block of text in wire form."""
    return {"type": "text", "text": text}
