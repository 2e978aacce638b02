"""Contexts: the request of a handler, and typed calls to the other side."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, overload

from anyio import CapacityLimiter
from pydantic import BaseModel

from ..logs import log
from ..model.base import optional
from ..model.json_types import is_object
from ..protocol import jsonrpc, methods
from ..protocol.access import Identity, RequestOrigin
from ..protocol.capabilities import missing
from ..protocol.envelope import RequestId, invalid_answer
from ..protocol.errors import CapabilityMissing, ConnectionClosed, NotAnswered, UnexpectedAnswer
from ..protocol.extension import Extension
from ..protocol.methods import OTHER_ROLE, Method, Notification, Params, RequestMethod, Result
from ..protocol.request_scope import LEVELS, Answer, Level, Link, Negotiated, RequestScope, is_wanted
from ..protocol.revision import Revision
from .session import Session

if TYPE_CHECKING:
    from .questions import Root
    from .rounds import Questions

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class Caller:
    """One side's typed calls to the other.

    Args:
        link: The way there.

    Attributes:
        negotiated: Agreement of both sides; `None` if the link has none.
        max_pages: The most pages of a list that are read.
        max_list_bytes: The most bytes of the pages of a list together.
    """

    max_pages: int = 1000
    max_list_bytes: int = 64 * 1024 * 1024

    def __init__(self, link: Link) -> None:
        self.link = link
        self.negotiated: Negotiated | None = link.negotiated

    def extension(self, extension: Extension) -> Any:
        """Return the settings with which the peer declares an extension that this side declares, too.

        In the stateless era a client declares its extensions anew in every request.

        Args:
            extension: The extension.

        Returns:
            The settings, typed where their type is stated; `None` where either side does not declare it, or the
            connection is in another revision.

        Raises:
            ProtocolError: They are not valid.
        """
        agreed = self.negotiated
        return None if agreed is None else extension.negotiated(agreed.dispatcher, agreed.declared)

    def check(self, method: Method, params: object) -> None:
        """Raise `CapabilityMissing` when a method, or these params of it, need a capability that was not declared."""
        agreed = self.negotiated
        if agreed is not None:
            dispatcher = agreed.dispatcher
            capability = missing(method, dispatcher.revision, dispatcher.role, agreed.declared, params)
            if capability is not None:
                raise agreed.missing_capability_error(method.name, capability)

    async def request(self, method: RequestMethod[Params, Any, Answer], params: Params) -> Answer:
        """Send any request of the method table, or one of your own, and return its result, of whatever type.

        Raises:
            CapabilityMissing: The other side did not declare a needed capability; nothing was sent.
            ProtocolError: The answer is an error.
            ConnectionClosed: The connection ended first.
        """
        self.check(method, params)
        return await self.link.request(method, params)

    async def call(self, method: RequestMethod[Params, Result, Any], params: Params) -> Result:
        """Send a request and return its usual result.

        Raises:
            ProtocolError: The other side answered with an error.
            UnexpectedAnswer: It answered with one of the method's alternatives.
        """
        answer = await self.request(method, params)
        if isinstance(answer, method.alternatives):
            raise UnexpectedAnswer(method.name, answer)
        return cast(Result, answer)

    async def notify(self, method: Notification[Params], params: Params) -> None:
        """Send any notification of the method table, or one of your own; raise as `request` does."""
        self.check(method, params)
        await self.link.notify(method, params)

    async def pages(self, call: Callable[[str | None], Awaitable[T]]) -> AsyncIterator[T]:
        """Yield the pages of a paginated list, typed or in wire form: call again with each cursor until there is none.

        Raises:
            ProtocolError: The list has no end: a cursor comes again, or there are more than `max_pages` or
                `max_list_bytes`.
        """
        cursor: str | None = None
        seen: set[str | None] = {cursor}
        size = 0
        for _ in range(self.max_pages):
            page = await call(cursor)
            cursor = page.get("nextCursor") if is_object(page) else optional(page, "next_cursor")
            size += len(jsonrpc.write_result(page)) if size or cursor is not None else 0  # a message has its own limit
            if size > self.max_list_bytes:
                raise invalid_answer(f"the list is larger than {self.max_list_bytes} bytes; max_list_bytes allows more")
            yield page
            if cursor is None:
                return
            if cursor in seen:
                raise invalid_answer(f"the list has no end: it gives the cursor {cursor[:60]!r} twice")
            seen.add(cursor)
        raise invalid_answer(f"the list has more than {self.max_pages} pages; max_pages allows more")

    def metadata(self, model: type[M], extra: Mapping[str, Any] | None) -> M:
        """Return the `_meta` of a request: the members that the link requires, and the caller's."""
        return model.model_validate({**self.link.meta, **(extra or {})})


class Context(Caller):
    """Context of a request; also sends requests and notifications to its sender.

    Attributes:
        scope: Scope of the request.
        link: Way to the sender.
        origin: Origin of the request: token, user, headers, address. In `Server.connections`, that of the newest
            message.
        identity: Verified token of the request; `None` where requests carry no tokens.
        request_id: Id of the request; `None` for a notification.
        negotiated: Agreement that the request counts on, if known.
        question_methods: Class of params -> the method of the question, in the revision of the handler.
    """

    question_methods: ClassVar[Mapping[type, RequestMethod[Any, Any, Any]]] = {}
    _token: Any = None
    _reached: float | None = None

    def __init__(self, scope: RequestScope, params: object = None, questions: Questions | None = None) -> None:
        self.scope = scope
        self.link: Link = scope.link
        self.origin: RequestOrigin = scope.origin
        self.identity: Identity | None = scope.origin.identity
        self.request_id: RequestId | None = scope.request_id
        self.negotiated: Negotiated | None = scope.negotiated
        self.params = params
        self._questions = questions
        self._asked: set[str] = set()

    @property
    def answered(self) -> Mapping[str, Any]:
        """Key -> answer in wire form, for questions of this handler in earlier rounds."""
        return {} if self._questions is None else self._questions.used

    @property
    def round(self) -> int:
        """Number of the run of the handler, from 1; it runs again after each answer of a stateless client.

        Clients may invent or repeat a later round, so the number proves nothing.
        """
        return 1 if self._questions is None else self._questions.round

    @property
    def session(self) -> Session:
        """The connection; raises `ConnectionClosed` where there is none, as for a request that stands for itself."""
        if not isinstance(self.link, Session):
            raise ConnectionClosed("this context has no connection")
        return self.link

    @property
    def threads(self) -> CapacityLimiter | None:
        """Limit of threads for blocking handlers, of this connection or user; `None` if there is none."""
        return self.link.thread_limit()

    @property
    def revision(self) -> str:
        """Revision of the handler's class."""
        return self._handler_revision.name

    @property
    def wire_revision(self) -> str:
        """Revision of the connection; differs from the handler's if the server is bridged."""
        return self.agreed.dispatcher.revision.name

    @property
    def _handler_revision(self) -> Revision:
        """The facts of the handler's revision, in which it is told everything, and says everything."""
        return self.agreed.dispatcher.revision

    @property
    def peer_info(self) -> Any:
        """Introduction of the other side: an `Implementation`, or `None`."""
        return self.agreed.peer_info

    @property
    def peer_capabilities(self) -> Mapping[str, Any]:
        """Capabilities of the other side, in wire form."""
        agreed = self.agreed
        return agreed.declared[OTHER_ROLE[agreed.dispatcher.role]]

    def require_extension(self, extension: Extension) -> Any:
        """Return the same as `extension`; raise if the client does not declare it.

        Raises:
            CapabilityMissing: The client does not declare it. Do not catch it: the client gets an error that names it
                (-32021 of MCP 2026-07-28).
            ProtocolError: Its settings are not valid.
        """
        found = self.extension(extension)
        if found is None:
            theirs = OTHER_ROLE[self.agreed.dispatcher.role]
            raise self.agreed.missing_capability_error("the request", (theirs, "extensions", extension.id))
        return found

    @property
    def agreed(self) -> Negotiated:
        """Agreement that the request counts on; raises `ConnectionClosed` if there is none."""
        if self.negotiated is None:
            raise ConnectionClosed("this context has no connection")
        return self.negotiated

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `_meta` of the request, in wire form."""
        meta = self.scope.meta or optional(self.params, "meta")
        if meta is None and isinstance(self.params, BaseModel):
            meta = (self.params.model_extra or {}).get("_meta")  # revisions that do not name it let it pass
        if isinstance(meta, BaseModel):
            return meta.model_dump()
        return meta if is_object(meta) else {}

    async def request(self, method: RequestMethod[Params, Any, Answer], params: Params) -> Answer:
        """Send any request of the method table, or one of your own, and return its result, of whatever type."""
        self.check(method, params)
        return cast(Answer, await self._ask(None, method, params))

    async def call(self, method: RequestMethod[Params, Result, Any], params: Params) -> Result:
        """Send a request and return its usual result; raise as `ask_by` does."""
        return await self.ask_by(None, method, params)

    async def notify(self, method: Notification[Params], params: Params) -> None:
        """Send any notification of the method table, or one of your own.

        Log messages are sent only if the client wants them; log messages and progress end with the request.

        Raises:
            RuntimeError: The notification is for subscribers: use `Server.broadcast`.
            CapabilityMissing: The client did not declare a capability that the notification needs.
            ConnectionClosed: The connection has ended.
        """
        if method.filter is not None and self.request_id is not None:
            raise RuntimeError(f"{method.name} is for those who listen: see Server.broadcast")
        agreed = self.negotiated
        if agreed is not None:
            revision = self._handler_revision
            if self.request_id is None and not is_wanted(self.link, agreed, method, params):
                return
            if method is revision.log and not agreed.wants(optional(params, "level") or LEVELS[-1]):
                return
            if (method is revision.log or method is revision.progress) and self.scope.is_over:
                return
            if method is revision.progress and not self._advances(params):
                return
        self.check(method, params)
        await self._tell(method, params)

    async def _tell(self, method: Notification[Any], params: object) -> None:
        await self.link.notify(method, params, related=self.request_id)

    def _advances(self, params: Any) -> bool:
        """Return whether progress increases, as each notification of it must; progress of other requests passes."""
        if params.progress_token != (self._token or self.meta.get("progressToken")):
            return True
        if self._reached is not None and params.progress <= self._reached:
            log.warning("progress %r after %r is not sent: it must increase", params.progress, self._reached)
            return False
        self._reached = params.progress
        return True

    @overload
    async def ask(self, message: str, type: type[T], *, key: str | None = None) -> T: ...

    @overload
    async def ask(self, message: str, type: object, *, key: str | None = None) -> Any: ...

    async def ask(self, message: str, type: object, *, key: str | None = None) -> Any:
        """Ask the user a question: `await ctx.ask("Delete it?", bool)`, in the way of the spoken revision.

        In a stateful revision the question is a request. In a stateless revision the handler ends here, and runs again
        from its beginning after the user has answered: all earlier side effects happen again. Not for secrets.

        Args:
            message: Text for the user.
            type: Type of the answer: `bool`, `str`, `int`, `float`, a date, a `Literal` or enum of texts, a list of one
                (from 2025-11-25), or a flat object of such: a pydantic model, a dataclass or a `TypedDict`.
            key: Name of the question in this handler; the default is its message.

        Returns:
            The answer. Declining a question for a `bool` counts as no: `False`.

        Raises:
            NotAnswered: The user declined or cancelled, or the client answered something else. A tool may let it pass.
            CapabilityMissing: The client, or its revision, has no way to ask the user.
            ValueError: The key names two questions of this handler.
            TypeError: No form of the revision asks for such a type.
        """
        from .questions import Form  # few servers need it

        form = Form(type)
        method = self._asks(methods.ELICIT)
        answer = await self.ask_by(self._once(key or message), method, form.params(method, message, self.revision))
        return form.read(message, answer)

    async def ask_url(self, message: str, url: str, *, key: str | None = None, id: str | None = None) -> None:
        """Ask the user to visit a page, in the way of the spoken revision; for secrets, logins and payments.

        The client shows the address, and opens it if the user agrees. This returns when the user has agreed, which may
        be before the end of the visit. In a stateless revision the handler ends here, and runs again, as for `ask`.

        Args:
            message: Text for the user.
            url: The address of the page.
            key: Name of the question in this handler; the default is its message.
            id: Id of the visit, which `url_completed` repeats; by default a new one.

        Raises:
            NotAnswered: The user declined or cancelled. A tool may let it pass.
            CapabilityMissing: The client, or its revision, cannot open pages: `elicitation.url`.
            ValueError: `url` is no http or https address, or the key names two questions of this handler.
        """
        from .questions import visit

        method, params = visit(self._handler_revision, message, url, id)
        answer = await self.ask_by(self._once(key or message), method, params)
        if answer.action != "accept":
            raise NotAnswered(message, answer.action)

    async def url_completed(self, id: str) -> None:
        """Tell the client that a visit of `ask_url` is over; do nothing in a revision without such a notification."""
        method = self._handler_revision.methods.get(methods.ELICITATION_COMPLETE)
        if isinstance(method, Notification):
            await self.notify(method, jsonrpc.typed_params(method, {"elicitationId": id}))

    async def sample(
        self,
        prompt: str,
        *,
        max_tokens: int = 1000,
        system_prompt: str | None = None,
        temperature: float | None = None,
        key: str | None = None,
    ) -> str:
        """Return the answer of a model of the client to a prompt.

        Args:
            prompt: Text of the user's message to the model.
            max_tokens: Maximum number of tokens.
            system_prompt: Suggested system prompt.
            temperature: Randomness, on the scale of the provider.
            key: Name of the question in this handler; the default is its prompt.

        Raises:
            CapabilityMissing: The client has no model to share.
            UnexpectedAnswer: The model wrote no text.
            ValueError: The key names two questions of this handler.
        """
        from .questions import sampling_params, text_of

        method = self._asks(methods.SAMPLE)
        params = sampling_params(method, prompt, max_tokens, system_prompt, temperature)
        return text_of(method, await self.ask_by(self._once(key or prompt), method, params))

    async def roots(self) -> list[Root]:
        """Return the user's directories and files; raise `CapabilityMissing` if the client cannot list them."""
        from .questions import Root

        method = self._asks(methods.LIST_ROOTS)
        answer = await self.ask_by(method.name, method, jsonrpc.typed_params(method, {}))
        return [Root(root.uri, root.name) for root in answer.roots]

    def _asks(self, name: str) -> RequestMethod[Any, Any]:
        """Return the method of a question; raise `CapabilityMissing` if the revision does not have it."""
        revision = self._handler_revision
        method = revision.methods.get(name)
        if not isinstance(method, RequestMethod):
            raise CapabilityMissing(name, ("client", name.partition("/")[0]), revision.name)
        return method

    def _once(self, key: str) -> str:
        """Return a key that is new; raise `ValueError` if this handler has used it for another question."""
        if key in self._asked:
            raise ValueError(f"two questions have the key {key!r}: give each a key of its own, ask(..., key=...)")
        self._asked.add(key)
        return key

    async def ask_params(self, key: str, params: Any) -> Any:
        """Ask the client a question with params of any revision; the answer is in the types of the same revision.

        In a stateful revision the question is a request. In a stateless revision the handler ends here, and runs again
        from its beginning with the client's answer: code before the question runs again.

        Args:
            key: Name of the question, unique in the handler and equal in each run.
            params: Params of the question; their class selects the method.

        Raises:
            TypeError: They are no params of a question.
            NotConvertible: The client's revision cannot express them.
            NotAnswered: See `ask_by`, also for further errors.
        """
        kind: type[object] = params.__class__
        method = self.question_methods.get(kind)
        if method is not None:
            return await self.ask_by(key, method, params)
        from .questions import in_types_of

        context, method = in_types_of(kind, self.agreed.dispatcher.revision, self.question_methods)
        return await context(self.scope, self.params, self._questions).ask_by(key, method, params)

    async def ask_by(self, key: str | None, method: RequestMethod[Params, Result, Any], params: Params) -> Result:
        """Ask the client something, as `ask_params` does, by a method of your choice.

        Args:
            key: Name of the question in this handler; `None` for its position.
            method: The method.
            params: Its params.

        Raises:
            NotAnswered: The content of a form does not fit the schema that the form was requested with.
            CapabilityMissing: The client did not declare a capability that the question needs.
            UnexpectedAnswer: The client answered with one of the method's alternatives.
        """
        self.check(method, params)
        answer: Any = await self._ask(key, method, params)
        if isinstance(answer, method.alternatives):
            raise UnexpectedAnswer(method.name, answer)
        if optional(params, "requested_schema") is not None:
            from .questions import check_answer

            check_answer(params, answer)
        result: Result = answer
        return result

    async def _ask(self, key: str | None, method: RequestMethod[Any, Any], params: object) -> Any:
        if method.carrier != "embedded":
            return await self.link.request(method, params, related=self.request_id)
        if self._questions is None:
            raise RuntimeError(f"{method.name} can only be asked while a request runs that may be answered in rounds")
        return await self._questions.ask(key or self._questions.next_key(method.name), method, params)

    def close_stream(self, retry: float = 1.0) -> bool:
        """Close the stream of the request while it runs; the client reconnects for the rest.

        Args:
            retry: Seconds before the client should reconnect.

        Returns:
            True if the stream was closed: events are kept meanwhile, and the client knows how to reconnect.
        """
        return self.link.close_stream(self.request_id, retry)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send progress of the request; do nothing if its sender did not ask for progress.

        Args:
            progress: Amount done; it must grow from call to call, or it is not sent.
            total: Total amount, if known.
            message: Description of the current step (from 2025-03-26).
        """
        self._token = self.meta.get("progressToken") if self._token is None else self._token
        if self._token is None:
            return
        wire = {"progressToken": self._token, "progress": progress, "total": total, "message": message}
        await self._notify(self._handler_revision.progress, wire)

    async def debug(self, data: object, logger: str | None = None) -> None:
        """Send a log message for debugging; see `log`."""
        await self.log("debug", data, logger)

    async def info(self, data: object, logger: str | None = None) -> None:
        """Send a log message about normal operation; see `log`."""
        await self.log("info", data, logger)

    async def warning(self, data: object, logger: str | None = None) -> None:
        """Send a log message about a possible problem; see `log`."""
        await self.log("warning", data, logger)

    async def error(self, data: object, logger: str | None = None) -> None:
        """Send a log message about an error; see `log`."""
        await self.log("error", data, logger)

    async def log(self, level: Level, data: object, logger: str | None = None) -> None:
        """Send a log message, unless the client does not want it.

        Args:
            level: Severity.
            data: Any JSON value.
            logger: Name of the part of the server.
        """
        await self._notify(self._handler_revision.log, {"level": level, "data": data, "logger": logger})

    async def _notify(self, method: Notification[Any] | None, wire: dict[str, Any]) -> None:
        if method is None:
            raise RuntimeError("this revision has no such notification")
        known = {key: value for key, value in wire.items() if value is not None or key == "data"}
        await self.notify(method, jsonrpc.typed_params(method, known))
