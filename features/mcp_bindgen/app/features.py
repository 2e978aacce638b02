"""The features of a contract's servers: lists are served verbatim, calls are answered by handlers."""

from __future__ import annotations

import re
from asyncio import CancelledError
from base64 import b64encode
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from traceback import extract_tb
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, cast

from pydantic_core import PydanticSerializationError, from_json, to_json

from mcp_bindgen.auth.resource_server.policy import readings, rule_keys
from mcp_bindgen.extension_abi import extension_of
from mcp_bindgen.extensions.apps import contents_meta, resource_uri, shows_apps, tools_for
from mcp_bindgen.extensions.tasks.service import Tasks
from mcp_bindgen.extensions.tasks.tools import ToolTask
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.base import Model
from mcp_bindgen.runtime.model.json_types import is_array, is_object
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.access import Identity
from mcp_bindgen.runtime.protocol.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CapabilityMissing,
    InvalidParams,
    NotAnswered,
    ProtocolError,
)
from mcp_bindgen.runtime.protocol.extension import ExtensionResult
from mcp_bindgen.runtime.protocol.methods import Request
from mcp_bindgen.runtime.protocol.routing import WrongResult, did_you_mean
from mcp_bindgen.runtime.protocol.uris import canonical
from mcp_bindgen.runtime.session.context import Context
from mcp_bindgen.runtime.session.rounds import other_than_required
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.runtime.session.stateless_server import MISSING, single_errors

from .catalog import KINDS, SCOPES, Catalog, Entry, Kind
from .context import Call, Next, through
from .context import Context as AppContext
from .errors import InvalidArguments, InvalidResult, ResourceNotFound, ToolError
from .handlers import UNSAFE, BoundContract, BoundHandler
from .uri_template import is_unsafe
from .values import ABSENT, content_block, structured_content, type_name, written

if TYPE_CHECKING:
    from mcp_bindgen.extensions.skills.folder import Skills

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

_PASSED = (ProtocolError, CapabilityMissing, InvalidResult, NotAnswered, ResourceNotFound)
"""The errors that callers get as they are."""

_MAX_ERROR_CHARACTERS = 200  # of an error that a model reads
_MAX_NAME_CHARACTERS = 100  # of a name that is repeated


class Page(Protocol):
    """The params of a list method."""

    cursor: str | None


class Named(Protocol):
    """The params of a method that calls an entry by its name."""

    name: str
    arguments: Mapping[str, Any] | None


class Addressed(Protocol):
    """The params of a method that names a URI."""

    uri: str


class Feature(Server):
    """A base of the classes of a contract's servers; it precedes the generated `Server` of a revision.

    Attributes:
        contract: The contract and its handlers.
        states: App -> the value of its lifespan.
        package: The bindings of the revision.
        revisions: The bindings of all revisions in which the contract is served.
        shared_lifespan: The lifespan that the servers of a contract share.
        argument_errors: The response to a call with invalid arguments; `None` for the preference of the revision.
        hide_errors: True to hide the errors of tools from callers; `None` to hide them from callers with tokens.
        own_tasks: The service that runs tools as tasks; `None` if no tool is a task.
        has_tasks: True if tools can run as tasks.
        has_tasks_elsewhere: True if they cannot, but can in another revision that is served.
        extension: The module of the extension to which the feature belongs; revisions without the extension lack it.
    """

    contract: BoundContract
    states: Mapping[Any, Any] = MappingProxyType({})
    package: ModuleType
    revisions: Sequence[ModuleType]
    shared_lifespan: Lifespan
    argument_errors: ArgumentErrors | None
    hide_errors: bool | None
    own_tasks: Tasks | None = None
    has_tasks: bool = False
    has_tasks_elsewhere: bool = False
    extension: ClassVar[str] = ""

    def lifespan(self) -> AbstractAsyncContextManager[None]:  # type: ignore[override]
        """Return the lifespan that the servers of the contract share."""
        return self.shared_lifespan()

    def find(self, kind: Kind, name: str, ctx: Context) -> BoundHandler:
        """Return the handler for a name; raise `ProtocolError` (-32602), which suggests a similar name."""
        handlers = self.contract.handlers[kind]
        found = handlers.get(name)
        if found is not None and self.offers(found, ctx):
            return found
        others = ((other, one) for other, one in handlers.items() if _may_use(ctx.identity, one.entry))
        allowed = (other for other, one in others if self.offers(one, ctx))
        hint = did_you_mean(name, allowed)
        raise ProtocolError(INVALID_PARAMS, f"Unknown {kind}: {name[:_MAX_NAME_CHARACTERS]}{hint}")

    def offers(self, handler: BoundHandler, ctx: Context) -> bool:
        """Return True if an entry is offered to the sender of a request."""
        if not (handler.is_for_model or shows_apps(ctx.peer_capabilities)):
            return False
        spec = handler.spec
        caller = (None, "") if ctx.identity is None else (ctx.identity.subject, ctx.identity.issuer)
        return all(layer.owner.allows(spec.kind, layer.name, spec.tags, *caller) for layer in handler.layers)

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
        if not any(layer.owner.middlewares for layer in handler.layers):
            return await through(handler.layers, self.states, call, work)

        async def in_wire_form(call: Call) -> Any:
            return jsonrpc.plain(await work(call))

        return self.result(method, await through(handler.layers, self.states, call, in_wire_form))

    def result(self, method: str, wire: dict[str, Any]) -> Any:
        """Return the result of a method from its wire form; raise `InvalidResult` if the revision does not allow it."""
        try:
            return jsonrpc.typed_result(self.package.methods.METHODS[method], wire)
        except ProtocolError as error:
            raise InvalidResult(f"{self.package.types.__name__}: {error.message}") from None

    @contextmanager
    def reporting(self, handler: BoundHandler, call: Call, code: int = INVALID_PARAMS) -> Generator[None]:
        """Raise `ProtocolError` with the line that callers read; log unexpected errors of the handler (-32603).

        Args:
            handler: The handler.
            call: The call.
            code: The code of a `ToolError`.
        """
        try:
            yield
        except ToolError as error:
            raise ProtocolError(code, error.text) from None
        except Exception as error:
            if any(isinstance(one, _PASSED) for one in single_errors(error)):
                raise
            log.exception("the %s %r failed: %s", handler.spec.kind, call.name, _for_author(handler, error))
            raise ProtocolError(INTERNAL_ERROR, self.reason(call.name, error, call.ctx)) from None

    def reason(self, name: str, error: Exception, ctx: Context) -> str:
        """Return the line that the caller of a failed handler reads."""
        is_hidden = ctx.identity is not None if self.hide_errors is None else self.hide_errors
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
            other = other_than_required(error)
            if other is None or isinstance(other, Exception | CancelledError | GeneratorExit | KeyboardInterrupt):
                raise
            did = f"called sys.exit({other.code!r})" if isinstance(other, SystemExit) else f"raised {other!r}"
            raise RuntimeError(f"the handler {did}").with_traceback(error.__traceback__) from error
        if isinstance(returned, ExtensionResult):
            return returned
        try:
            for package in (self.package, *self.revisions) if isinstance(returned, Model) else ():
                request: Request[Any, Any, Any] = package.methods.METHODS[method]
                if isinstance(returned, (request.result, *request.alternatives)):
                    return returned if package is self.package else self.result(method, jsonrpc.plain(returned))
            return build(handler, returned)
        except (InvalidResult, PydanticSerializationError) as error:
            no_json = f"returned a value that JSON cannot express: {error}"
            wrong = error if isinstance(error, InvalidResult) else handler.invalid(no_json)
            if self.hide_errors:
                wrong.told = ""
            raise wrong from None


ListHandler: TypeAlias = "Callable[[Feature, Page, Context], Awaitable[Any]]"


def lists(
    method: str, kind: Kind, fit: Callable[[Mapping[str, Any], list[Entry]], list[Entry]] | None = None
) -> ListHandler:
    """Return the handler of a list method: its only page has the entries of the contract, verbatim.

    Args:
        method: The method.
        kind: The kind of the entries.
        fit: Returns the entries for the capabilities of a client, if they make a difference.
    """
    member = KINDS[kind].member

    async def handler(self: Feature, params: Page, ctx: Context) -> Any:
        if params.cursor is not None:
            raise InvalidParams(method, [{"path": "params.cursor", "problem": "there is no such page"}])
        page = jsonrpc.plain(self.result(method, {member: []}))
        entries: list[Entry] = self.contract.catalog.document.get(member, [])
        shown = self.contract.listed_tools if kind == "tool" else None
        if shown is not None:
            entries = [entry for entry in entries if entry["name"] in shown]
        entries = [entry for entry in entries if self.offers(self.contract.find(kind, entry), ctx)]
        return {**page, member: entries if fit is None else fit(ctx.peer_capabilities, entries)}

    return handler


class Tools(Feature):
    """Answers `tools/list` and `tools/call`."""

    list_tools: ListHandler = lists("tools/list", "tool", tools_for)

    def tasks_of(self, name: str) -> ToolTask | None:
        """Return the way a tool runs as a task, or None if it never does."""
        handler = self.contract.handlers["tool"].get(name)
        return None if handler is None else handler.task

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
                _validate(handler, result)
            return result

        call = Call("tool", params.name, params.arguments or {}, cast(AppContext, ctx))
        try:
            return await self.through(handler, call, "tools/call", work)
        except InvalidArguments as error:
            default = "result" if self.package.REVISION.argument_errors_in_results else "protocol"
            if (self.argument_errors or default) == "protocol":
                raise
            return self._failed(error.message)
        except ToolError as error:
            return self._failed(error.text)
        except (NotAnswered, ResourceNotFound) as error:
            return self._failed(str(error) or "there is no such resource")
        except Exception as error:
            errors = list(single_errors(error))
            has_code = ctx.negotiated is not None and MISSING in ctx.negotiated.dispatcher.revision.errors
            if not has_code and all(isinstance(one, CapabilityMissing) and one.owner == "client" for one in errors):
                return self._failed(str(errors[0]))
            if any(isinstance(one, ProtocolError | CapabilityMissing) for one in errors):
                raise
            log.exception("the tool %r failed: %s", params.name, _for_author(handler, error))
            return self._failed(self.reason(params.name, error, ctx))

    def _result(self, handler: BoundHandler, returned: Any) -> Any:
        """Return the result in wire form; it is checked against the revision if it may be invalid there."""
        wire = tool_result(handler, returned)
        is_valid = type(returned) is str if handler.spec.output is None else is_object(wire["structuredContent"])
        return wire if is_valid else self.result("tools/call", wire)

    def _failed(self, text: str) -> Any:
        """Return the result that tells a model the reason of a failure."""
        return self.result("tools/call", {"content": [_text(text)], "isError": True})


class Prompts(Feature):
    """Answers `prompts/list` and `prompts/get`."""

    list_prompts: ListHandler = lists("prompts/list", "prompt")

    async def get_prompt(self, params: Named, ctx: Context) -> Any:
        """Return the messages of a prompt.

        Raises:
            ProtocolError: There is no such prompt, its arguments do not fit, or they name a resource that is missing.
            InvalidResult: The handler returned a value that is no prompt.
        """
        handler = self.find("prompt", params.name, ctx)

        async def work(call: Call) -> Any:
            arguments = handler.read(call.arguments, "params.arguments")
            return await self.answer("prompts/get", handler, arguments, ctx, self._messages)

        call = Call("prompt", params.name, params.arguments or {}, cast(AppContext, ctx))
        try:
            with self.reporting(handler, call):
                return await self.through(handler, call, "prompts/get", work)
        except ResourceNotFound as error:
            raise ProtocolError(INVALID_PARAMS, str(error) or "there is no such resource") from None

    def _messages(self, handler: BoundHandler, returned: Any) -> Any:
        messages = _items(handler, returned, lambda text: {"role": "user", "content": _text(text)})
        return self.result("prompts/get", {**handler.described("description"), "messages": messages})


class Resources(Feature):
    """Answers `resources/list`, `resources/templates/list` and `resources/read`."""

    list_resources: ListHandler = lists("resources/list", "resource")
    list_resource_templates: ListHandler = lists("resources/templates/list", "template")

    async def read_resource(self, params: Addressed, ctx: Context) -> Any:
        """Read a resource of the contract, else one of the most specific template that matches.

        Raises:
            ProtocolError: There is no such resource.
            InvalidResult: The handler returned a value that is no content.
        """
        found = next(self._candidates(params.uri, ctx), None)
        if found is None:
            raise not_found(self.package, params.uri)
        handler, variables, arguments = found

        async def work(call: Call) -> Any:
            return await self.answer("resources/read", handler, arguments, ctx, partial(self._contents, params.uri))

        call = Call("resource", params.uri, variables, cast(AppContext, ctx))
        try:
            with self.reporting(handler, call, INTERNAL_ERROR):
                return await self.through(handler, call, "resources/read", work)
        except ResourceNotFound as error:
            raise not_found(self.package, params.uri, str(error)) from None

    def _candidates(self, uri: str, ctx: Context) -> Iterator[tuple[BoundHandler, Mapping[str, Any], Any]]:
        """Yield the handlers that may know a URI, each with the variables in the URI as sent and typed."""
        exact = self.contract.handlers["resource"].get(canonical(uri))
        if exact is not None and self.offers(exact, ctx):
            yield exact, {}, None
        for handler, found in self.contract.matching(uri):
            with suppress(InvalidArguments):
                if self.offers(handler, ctx):
                    yield handler.at(found.texts), found.variables, handler.read(found.variables, "params.uri")

    def _contents(self, uri: str, handler: BoundHandler, returned: Any) -> Any:
        if isinstance(returned, str):
            content = {"text": returned}
        elif isinstance(returned, bytes):
            content = {"blob": b64encode(returned).decode()}
        else:
            raise handler.invalid(f"returned {type(returned).__name__}")
        wire = {"uri": uri, **handler.described("mimeType"), **contents_meta(handler.entry), **content}
        return self.result("resources/read", {"contents": [wire]})


class Subscriptions(Feature):
    """Answers `resources/subscribe` and `resources/unsubscribe`; in stateless revisions clients listen instead."""

    async def subscribe(self, params: Addressed, ctx: Context) -> Any:
        """Accept a subscription to a resource; raise `ProtocolError` if there is none."""
        if not self.contract.knows(params.uri, lambda handler: self.offers(handler, ctx)):
            raise not_found(self.package, params.uri)
        return self.result("resources/subscribe", {})

    def agree(self, wanted: Any, ctx: Context) -> Any:
        """Return the filter of a subscription without resources that are missing or hidden from the client."""
        member = self.package.REVISION.methods[UPDATED].filter.member
        uris: Sequence[str] = getattr(wanted, member) or ()
        known = [uri for uri in uris if self.contract.knows(uri, lambda handler: self.offers(handler, ctx))]
        return super().agree(wanted.model_copy(update={member: known or None}), ctx)

    async def unsubscribe(self, params: Addressed, ctx: Context) -> Any:
        """End a subscription to a resource."""
        return self.result("resources/unsubscribe", {})


@dataclass(frozen=True)
class Completion:
    """A value to complete (MCP, "Completion").

    Attributes:
        of: `prompt` for an argument of a prompt, `template` for a variable of a resource template.
        name: The prompt's name, or the URI template.
        argument: The name of the argument or variable.
        value: The text that the user typed.
        known: The other arguments or variables with known values: name -> value.
    """

    of: Literal["prompt", "template"]
    name: str
    argument: str
    value: str
    known: Mapping[str, str]


class Completions(Feature):
    """Answers `completion/complete` for the arguments of prompts and the variables of templates."""

    async def complete(self, params: Any, ctx: Context) -> Any:
        """Complete a value; raise `ProtocolError` if the contract has no such prompt, template or argument."""
        of: Literal["prompt", "template"] = "prompt" if params.ref.type == "ref/prompt" else "template"
        name = params.ref.name if of == "prompt" else params.ref.uri
        handler = self.find(of, name, ctx)
        names = arguments_of(self.contract, handler)
        if names and params.argument.name not in names:
            raise ProtocolError(INVALID_PARAMS, f"The {of} {name} has no such argument")
        context: Any = getattr(params, "context", None)  # revisions since 2025-06-18 have it
        known: Mapping[str, str] = (context and context.arguments) or {}
        is_checked = of == "template" and not handler.spec.allows_unsafe_values
        if is_checked and is_unsafe([params.argument.value, *known.values()]):
            raise ProtocolError(INVALID_PARAMS, f"The template {name} refuses {UNSAFE}")
        asked = Completion(of, name, params.argument.name, params.argument.value, known)
        own = self.contract.complete

        async def work(call: Call) -> Any:
            values = from_enum(self.contract.catalog, asked) if own is None else list(await own(asked, ctx))
            most = self.package.methods.METHODS["completion/complete"].truncation.max_items
            shown = {"values": values[:most], "total": len(values), "hasMore": len(values) > most}
            return self.result("completion/complete", {"completion": shown})

        call = Call("completion", name, {asked.argument: asked.value}, cast(AppContext, ctx))
        with self.reporting(handler, call):
            return await self.through(handler, call, "completion/complete", work)


def arguments_of(contract: BoundContract, handler: BoundHandler) -> list[Any]:
    """Return the names of the variables of a template, or of the arguments of a prompt that the contract describes."""
    variables = {one: template.variables for template, one in contract.templates}.get(handler, ())
    return [one.name for one in variables] or [one.get("name") for one in _arguments(handler.entry)]


def from_enum(catalog: Catalog, asked: Completion) -> list[str]:
    """Return the values of an `enum` in the contract that begin with the typed text, ignoring case."""
    typed = asked.value.casefold()
    arguments = _arguments(catalog.entries(asked.of).get(asked.name, {}))
    values = (value for one in arguments if one.get("name") == asked.argument for value in one.get("enum", ()))
    return [value for value in values if value.casefold().startswith(typed)]


def _arguments(entry: Entry) -> Iterator[Entry]:
    """Yield the arguments of a prompt, or the variables of a template, that the contract describes."""
    for member in ("arguments", "variables"):
        described = entry.get(member)
        yield from filter(is_object, described if is_array(described) else ())


class Scoped(Feature):
    """States the scopes that calls of tools, prompts and resources need (MCP, "Authorization")."""

    def required_scopes(self, method: str, name: str | None) -> Collection[str]:
        """Return the scopes of the entry that is called, and of all entries to which a URI may belong.

        A completion reveals the arguments of an entry, so it needs the scopes of the entry.
        """
        if name is None:
            return ()
        contract = self.contract
        entries: list[Entry] = []
        if kind := _NAMED.get(method):
            entries += [handler.entry for handler in (contract.handlers[kind].get(name),) if handler is not None]
        if method in _ADDRESSED and contract.resource_rules:
            entries += [entry for key in rule_keys(name) for entry in contract.resource_rules.get(key, ())]
            for template, handler in contract.templates:
                if SCOPES in handler.entry:
                    forms = readings(name, template.text)
                    entries += [handler.entry] * any(template.match(form) is not None for form in forms)
        return {scope for entry in entries for scope in entry.get(SCOPES, ())}


_NAMED: Mapping[str, Kind] = {"tools/call": "tool", "prompts/get": "prompt", "completion/complete": "prompt"}
"""Method -> the kind of the entries that it names."""

_ADDRESSED = frozenset({"resources/read", "resources/subscribe", "completion/complete"})
"""The methods that name the URI of a resource, or a URI template."""


class AppsFeature(Feature):
    """Declares MCP Apps; the metadata is in the entries of tools and resources."""

    extension = "apps"


class SkillsFeature(Feature):
    """Answers `skills/list`, `skills/get` and `resources/directory/read`; the files themselves are resources."""

    extension = "skills"

    @property
    def _skills(self) -> Skills:
        assert self.contract.skills is not None
        return self.contract.skills

    async def list_skills(self, params: Page, ctx: Context) -> Any:
        """Return a page of the skills; raise `InvalidParams` for an unknown cursor."""
        return self._page("skills/list", "skills", self._skills.entries.values(), params)

    async def get_skill(self, params: Addressed, ctx: Context) -> Any:
        """Return a skill; raise `ProtocolError` (-32602) if there is none."""
        skill = self._skills.entries.get(canonical(params.uri))
        if skill is None:
            raise ProtocolError(INVALID_PARAMS, "No skill is served there", {"uri": params.uri})
        return self._wire("skills/get", {"skill": skill})

    async def read_resource_directory(self, params: Any, ctx: Context) -> Any:
        """Return a page of the direct children of a folder; raise `ProtocolError` (-32602) if there is none."""
        children = self._skills.directories.get(canonical(params.uri))
        if children is None:
            raise ProtocolError(INVALID_PARAMS, "No directory is served there", {"uri": params.uri})
        return self._page("resources/directory/read", "resources", children, params)

    def _page(self, method: str, member: str, entries: Iterable[dict[str, Any]], params: Page) -> Any:
        from mcp_bindgen.extensions.skills.folder import page  # contracts without skills do not load it

        try:
            shown, following = page(entries, params.cursor)
        except LookupError:
            raise InvalidParams(method, [{"path": "params.cursor", "problem": "there is no such page"}]) from None
        return self._wire(method, {member: shown, **({} if following is None else {"nextCursor": following})})

    def _wire(self, method: str, wire: dict[str, Any]) -> Any:
        bindings: Any = extension_of(self.package, SkillsFeature.extension)  # other features have other extensions
        return jsonrpc.typed_result(bindings.methods.METHODS[method], wire)


def features_of(contract: BoundContract) -> tuple[type[Feature], ...]:
    """Return the features of a contract, in the order of the bases of a server's class.

    A list in the document counts even if it is empty. Completion needs values of an `enum`, or a method that completes.
    """
    document, handlers, entries = contract.catalog.document, contract.handlers, contract.catalog.entries
    listed = [entry for place in KINDS.values() for entry in document.get(place.member, ())]
    described = [*entries("prompt").values(), *entries("template").values()]
    has_values = any("enum" in argument for entry in described for argument in _arguments(entry))
    completes = has_values if contract.complete is None else handlers["prompt"] or handlers["template"]
    present = {
        Tools: "tools" in document,
        Prompts: "prompts" in document,
        Resources: "resources" in document or "resourceTemplates" in document,
        Subscriptions: UPDATED in contract.announces,
        Completions: completes,
        Scoped: any(entry.get(SCOPES) for entry in listed),
        AppsFeature: any(resource_uri(tool.entry) is not None for tool in handlers["tool"].values()),
        SkillsFeature: contract.skills is not None,
    }
    return tuple(feature for feature, is_present in present.items() if is_present)


def not_found(package: ModuleType, uri: str, reason: str = "") -> ProtocolError:
    """Return the error of a revision for a URI without a resource, with the reason of the handler."""
    code = getattr(package.errors, "RESOURCE_NOT_FOUND", INVALID_PARAMS)
    return ProtocolError(code, f"Resource not found: {reason}" if reason else "Resource not found", {"uri": uri})


def tool_result(handler: BoundHandler, returned: Any) -> dict[str, Any]:
    """Return the wire form of a result: structured content and its text, or content alone."""
    wanted = handler.spec.output
    if wanted is None:
        return {"content": _items(handler, returned, _text)}
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
    return {"content": [_text(text)], "structuredContent": from_json(text)}


def _validate(handler: BoundHandler, result: Any) -> None:
    """Raise `InvalidResult` unless the structured content of a final result fits the output schema."""
    assert handler.output is not None
    if is_object(result):
        structured = result.get("structuredContent", ABSENT)
    elif getattr(result, "content", None) is None or result.is_error:
        return
    else:
        structured = structured_content(result)
    if structured is ABSENT:
        raise handler.invalid("returned no structured content")
    for problem in handler.output.problems(structured, "structuredContent"):
        raise handler.invalid(f"returned {problem['path']}: {problem['problem']}")


def _items(handler: BoundHandler, returned: object, from_text: Callable[[str], Any]) -> list[Any]:
    """Return the wire forms of a text or a sequence of models; raise `InvalidResult` for any other value."""
    if isinstance(returned, Sequence):
        items = [returned] if isinstance(returned, str | bytes) else cast(Sequence[object], returned)
        return [from_text(one) if isinstance(one, str) else content_block(one) for one in items]
    raise handler.invalid(f"returned {type(returned).__name__}")


def _may_use(identity: Identity | None, entry: Entry) -> bool:
    """Return True if a caller may use an entry; scopes do not apply to a caller without a token."""
    return identity is None or identity.scopes.issuperset(entry.get(SCOPES, ()))


def _one_line(error: Exception) -> str:
    """Return a short line about an error, without the paths of folders."""
    text = error.told if isinstance(error, WrongResult) else f"{type(error).__name__}: {error}"
    line = text.partition("\n")[0].rstrip(": ")
    return line if len(line) <= _MAX_ERROR_CHARACTERS else f"{line[:_MAX_ERROR_CHARACTERS]}..."


def _for_author(handler: BoundHandler, error: Exception) -> str:
    """Return a line about an error with the line of the author's file that raised it."""
    if isinstance(error, WrongResult):
        return str(error)
    file = handler.place.rpartition(":")[0]
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == file]
    place = f"{file}:{lines[-1]}" if lines else handler.place
    return f"{type(error).__name__}: {error} ({place}); raise mcp_bindgen.app.ToolError to tell callers a reason"


def _text(text: str) -> dict[str, str]:
    """Return a block of text in wire form."""
    return {"type": "text", "text": text}
