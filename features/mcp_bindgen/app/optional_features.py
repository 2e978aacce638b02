"""The features that few contracts have: prompts, resources, completions, scopes and extensions."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from mcp_bindgen.extensions.apps import contents_meta, resource_uri
from mcp_bindgen.runtime.logs import log
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
from mcp_bindgen.runtime.protocol.request_scope import Link
from mcp_bindgen.runtime.protocol.uris import canonical
from mcp_bindgen.runtime.session.context import Context
from mcp_bindgen.runtime.session.session import Session

from .catalog import KINDS, SCOPES, Catalog, Entry, Kind
from .context import Call
from .context import Context as AppContext
from .errors import InvalidArguments, ResourceNotFound, ToolError
from .features import UPDATED, Feature, ListHandler, Named, Page, for_author, items, lists, text_block
from .handlers import UNSAFE, BoundContract, BoundHandler, HandlerSpec
from .uri_template import is_unsafe

if TYPE_CHECKING:
    from mcp_bindgen.extensions.skills.folder import SkillFile, Skills


_PASSED = (ProtocolError, CapabilityMissing, ResourceNotFound)
"""The errors that callers get as they are."""


class Addressed(Protocol):
    """The params of a method that names a URI."""

    uri: str


@contextmanager
def _reporting(feature: Feature, handler: BoundHandler, call: Call, code: int = INVALID_PARAMS) -> Generator[None]:
    """Raise `ProtocolError` with the line that callers read; log unexpected errors of the handler (-32603).

    Args:
        feature: The feature of the entry.
        handler: The handler.
        call: The call.
        code: The code of a `ToolError` and of a question without an answer.
    """
    try:
        yield
    except (ToolError, NotAnswered) as error:
        raise ProtocolError(code, str(error)) from None
    except Exception as error:
        from mcp_bindgen.runtime.session.stateless_server import single_errors  # only if a handler fails

        if any(isinstance(one, _PASSED) for one in single_errors(error)):
            raise
        log.exception("the %s %r failed: %s", handler.spec.kind, call.name, for_author(handler, error))
        raise ProtocolError(INTERNAL_ERROR, feature.reason(call.name, error, call.ctx)) from None


class Prompts(Feature):
    """Answers `prompts/list` and `prompts/get`."""

    list_prompts: ListHandler = lists("prompt")

    async def get_prompt(self, params: Named, ctx: Context) -> Any:
        """Return the messages of a prompt.

        Raises:
            ProtocolError: There is no such prompt, its arguments do not fit, they name a resource that is missing, the
                handler failed, or it returned a value that is no prompt.
        """
        handler = self.find("prompt", params.name, ctx)

        async def work(call: Call) -> Any:
            arguments = handler.read(call.arguments, "params.arguments")
            return await self.answer("prompts/get", handler, arguments, ctx, self._messages)

        call = Call("prompt", params.name, params.arguments or {}, cast(AppContext, ctx))
        try:
            with _reporting(self, handler, call):
                return await self.through(handler, call, "prompts/get", work)
        except ResourceNotFound as error:
            raise ProtocolError(INVALID_PARAMS, str(error) or "there is no such resource") from None

    def _messages(self, handler: BoundHandler, returned: Any) -> Any:
        messages = items(handler, returned, lambda text: {"role": "user", "content": text_block(text)})
        return self.result("prompts/get", {**_member(handler.entry, "description"), "messages": messages})


class Resources(Feature):
    """Answers `resources/list`, `resources/templates/list` and `resources/read`."""

    list_resources: ListHandler = lists("resource")
    list_resource_templates: ListHandler = lists("template")

    async def read_resource(self, params: Addressed, ctx: Context) -> Any:
        """Read a resource of the contract, else one of the most specific template that matches.

        Raises:
            ProtocolError: There is no such resource, or the handler failed, or returned a value that is no content.
        """
        found = next(self._candidates(params.uri, ctx), None)
        if found is None:
            raise not_found(self.package, params.uri)
        handler, variables, arguments = found

        async def work(call: Call) -> Any:
            return await self.answer("resources/read", handler, arguments, ctx, partial(self._contents, params.uri))

        call = Call("resource", params.uri, variables, cast(AppContext, ctx))
        try:
            with _reporting(self, handler, call, INTERNAL_ERROR):
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
            raise handler.invalid(f"returned {type(returned).__name__}, expected str or bytes; correct the value")
        wire = {"uri": uri, **_member(handler.entry, "mimeType"), **contents_meta(handler.entry), **content}
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
        with _reporting(self, handler, call):
            return await self.through(handler, call, "completion/complete", work)


def _member(entry: Entry, name: str) -> Entry:
    """Return an object with one member of an entry; an empty one if the entry lacks it."""
    value = entry.get(name)
    return {} if value is None else {name: value}


def arguments_of(contract: BoundContract, handler: BoundHandler) -> list[Any]:
    """Return the names of the variables of a template, or of the arguments of a prompt that the contract describes."""
    variables = {one: template.variables for template, one in contract.templates}.get(handler, ())
    return [one.name for one in variables] or [one.get("name") for one in described_arguments(handler.entry)]


def from_enum(catalog: Catalog, asked: Completion) -> list[str]:
    """Return the values of an `enum` in the contract that begin with the typed text, ignoring case."""
    typed = asked.value.casefold()
    arguments = described_arguments(catalog.entries(asked.of).get(asked.name, {}))
    values = (value for one in arguments if one.get("name") == asked.argument for value in one.get("enum", ()))
    return [value for value in values if value.casefold().startswith(typed)]


def described_arguments(entry: Entry) -> Iterator[Entry]:
    """Yield the arguments of a prompt, or the variables of a template, that the contract describes."""
    for member in ("arguments", "variables"):
        described = entry.get(member)
        yield from filter(is_object, described if is_array(described) else ())


class Scoped(Feature):
    """States the scopes that calls of tools, prompts and resources need (MCP, "Authorization").

    A client whose token changes is notified of the lists that change with it: a session, and subscriptions of a caller
    that sends a newer token.
    """

    @cached_property
    def _identities(self) -> dict[str | None, dict[Link, Identity | None]]:
        """Principal -> its clients that can be notified -> identity of the newest request; `None` if it is unknown."""
        return {}

    def arrived(self, link: Link) -> None:
        """Note a subscription, or a session of another process, whose last token is unknown here."""
        super().arrived(link)
        if link.ready:
            self._identities.setdefault(link.origin.principal, {})[link] = link.origin.identity

    def left(self, link: Link) -> None:
        """Forget a client."""
        super().left(link)
        own = self._identities.get(link.origin.principal, {})
        own.pop(link, None)
        if not own:
            self._identities.pop(link.origin.principal, None)

    def offers(self, handler: BoundHandler, ctx: Context, *, listed: bool = False) -> bool:
        """Return True if an entry is offered to the sender of a request, whose token is noted."""
        if ctx.identity is not None:
            self._note(ctx.link, ctx.identity)
        return super().offers(handler, ctx, listed=listed)

    def _note(self, link: Link, now: Identity) -> None:
        own = self._identities.get(now.principal, {})
        if not isinstance(link, Session):
            expires = now.expires or 0.0
            newer = (one for one, former in own.items() if former is not None and expires > (former.expires or 0.0))
            clients = {one: own[one] for one in newer if not isinstance(one, Session)}
        elif link.closed.is_set():
            return
        else:
            own = self._identities.setdefault(now.principal, own)
            clients = {link: own.setdefault(link, now)}
        for client, former in clients.items():
            own[client] = now
            if former is not None and (former, former.claims) == (now, now.claims):
                continue  # verifiers may make an object for each request
            for kind, handlers in self.contract.handlers.items():
                shown = partial(self._shown, [*handlers.values()], client)
                if handlers and (former is None or shown(former) != shown(now)):
                    self.announce(KINDS[kind].changed, link=client)

    def _shown(self, handlers: Sequence[BoundHandler], link: Link, identity: Identity) -> list[bool]:
        revision = link.negotiated.dispatcher.revision.name
        return [self.shows(one, identity, link.endpoint, revision) for one in handlers]

    def hides(self, identity: Identity | None, method: str, name: str | None) -> bool:
        """Return True if conditions hide an entry, or all entries to which a URI may belong, from a caller."""
        contract = self.contract
        if name is None or not contract.has_conditions:
            return False
        own = contract.handlers[_NAMED[method]].get(name) if method in _NAMED else None
        if own is not None:
            return not own.admits(identity)
        is_known = method in _ADDRESSED and contract.knows(name)
        return is_known and not contract.knows(name, lambda handler: handler.admits(identity))

    def required_scopes(self, method: str, name: str | None) -> Collection[str]:
        """Return the scopes of the entry that is called, and of all entries to which a URI may belong.

        A completion reveals the arguments of an entry, so it needs the scopes of the entry.
        """
        if name is None:
            return ()
        from mcp_bindgen.auth.resource_server.policy import readings, rule_keys  # where tokens are verified

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
        from mcp_bindgen.extension_abi import extension_of  # other features do not load it

        bindings: Any = extension_of(self.package, SkillsFeature.extension)  # other features have other extensions
        return jsonrpc.typed_result(bindings.methods.METHODS[method], wire)


def not_found(package: ModuleType, uri: str, reason: str = "") -> ProtocolError:
    """Return the error of a revision for a URI without a resource, with the reason of the handler."""
    code = getattr(package.errors, "RESOURCE_NOT_FOUND", INVALID_PARAMS)
    return ProtocolError(code, f"Resource not found: {reason}" if reason else "Resource not found", {"uri": uri})


def add_skills(contract: BoundContract, folder: str | PathLike[str]) -> None:
    """Add the skills of a folder to a contract: their files are resources, of which each `SKILL.md` is listed.

    Raises:
        BadSkill: The folder has no skill, a skill that clients need not accept, or a skill at a path that is taken.
        ImportError: `mcp-bindgen[skills]` is not installed.
    """
    from mcp_bindgen.extensions.skills.folder import Skills  # other contracts do not load it

    contract.skills = skills = contract.skills or Skills()
    for file in skills.add(folder):
        add = contract.add if file.uri in skills.entries else contract.bind
        add(contract.handler(HandlerSpec("resource", file.uri), skills.resource(file), _reader(file)))


def _reader(file: SkillFile) -> Callable[[Context], Awaitable[str | bytes]]:
    """Return the method that reads a file of a skill."""

    async def read(ctx: Context) -> str | bytes:
        return file.contents

    return read


def optional_features(contract: BoundContract) -> tuple[type[Feature], ...]:
    """Return the features of a contract other than tools, in the order of the bases of a server's class."""
    document, handlers, entries = contract.catalog.document, contract.handlers, contract.catalog.entries
    listed = [entry for place in KINDS.values() for entry in document.get(place.member, ())]
    described = [*entries("prompt").values(), *entries("template").values()]
    has_values = any("enum" in argument for entry in described for argument in described_arguments(entry))
    completes = has_values if contract.complete is None else handlers["prompt"] or handlers["template"]
    present = {
        Prompts: "prompts" in document,
        Resources: "resources" in document or "resourceTemplates" in document,
        Subscriptions: UPDATED in contract.announces,
        Completions: completes,
        Scoped: contract.has_conditions or any(entry.get(SCOPES) for entry in listed),
        AppsFeature: any(resource_uri(tool.entry) is not None for tool in handlers["tool"].values()),
        SkillsFeature: contract.skills is not None,
    }
    return tuple(feature for feature, is_present in present.items() if is_present)
