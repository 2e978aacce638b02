"""Give a handler what it knows of its request, and its way back to the side that sent it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, overload

from anyio import CapacityLimiter
from pydantic import BaseModel

from ..era.lifecycle import ELICIT, LIST_ROOTS, SAMPLE
from ..era.stateless.input_required import Questions
from ..logs import log
from ..model.json_types import is_object
from ..protocol import jsonrpc
from ..protocol.access import Identity, RequestOrigin
from ..protocol.capabilities import is_declared
from ..protocol.envelope import RequestId
from ..protocol.errors import CapabilityMissing, ConnectionClosed, UnexpectedAnswer
from ..protocol.extension import Extension
from ..protocol.methods import Notification, Request
from ..protocol.negotiated import LEVELS, Level, Negotiated
from ..protocol.revision import Revision
from .caller import Caller
from .questions import Form, Root, check_answer, sampling_params, text_of
from .request_scope import RequestScope
from .session import Session

Params = TypeVar("Params")
Result = TypeVar("Result")
Answer = TypeVar("Answer")
T = TypeVar("T")


class Context(Caller):
    """The request of a handler, and what it may do meanwhile.

    Attributes:
        scope: Scope of the request.
        link: Way to the sender.
        origin: Origin of the request: token, user, headers, address. In `Server.connections`, that of the newest
            message.
        identity: Verified token of the request; `None` where requests carry no tokens.
        request_id: Id of the request; `None` for a notification.
    """

    _token: Any = None
    _reached: float | None = None

    def __init__(
        self,
        scope: RequestScope,
        params: Any = None,
        questions: Questions | None = None,
    ) -> None:
        self.scope = scope
        self.link = scope.link
        self.origin: RequestOrigin = scope.origin
        self.identity: Identity | None = scope.origin.identity
        self.request_id: RequestId | None = scope.request_id
        self.params = params
        self._questions = questions
        self._asked: set[str] = set()

    @property
    def answered(self) -> Mapping[str, Any]:
        """Key -> answer in wire form, for the questions of this handler that were answered in rounds before it ran."""
        return {} if self._questions is None else self._questions.used

    @property
    def negotiated(self) -> Negotiated | None:
        """What the request may count on, if that is known."""
        return self.scope.negotiated

    @property
    def session(self) -> Session:
        """The connection; raises `ConnectionClosed` where there is none, as for a request that stands for itself."""
        if not isinstance(self.link, Session):
            raise ConnectionClosed("this context has no connection")
        return self.link

    @property
    def threads(self) -> CapacityLimiter | None:
        """The threads for handlers that block, of this connection or of this user; `None` where nobody counts them."""
        return self.link.thread_limit()

    @property
    def revision(self) -> str:
        """The revision of the handler: that of its class."""
        return self._words.name

    @property
    def wire_revision(self) -> str:
        """The revision of the connection: another one than the handler's where its server serves that, too."""
        return self._agreed.dispatcher.revision.name

    @property
    def _words(self) -> Revision:
        """The facts of the handler's revision, in which it is told everything, and says everything."""
        return self._agreed.dispatcher.revision

    @property
    def peer_info(self) -> Any:
        """How the other side introduced itself: an `Implementation`, or `None`."""
        return self._agreed.peer_info

    @property
    def peer_capabilities(self) -> Mapping[str, Any]:
        """What the other side declared, in wire form."""
        agreed = self._agreed
        return agreed.declared["client" if agreed.dispatcher.role == "server" else "server"]

    def extension(self, extension: Extension) -> Any:
        """Return the settings with which the client declares an extension, typed where their type is stated.

        In the stateless era a client declares its extensions anew in every request.

        Returns:
            The settings, empty where it states none; `None` where it does not declare the extension, or this server
            does not: do then without it, or `require_extension`.

        Raises:
            ProtocolError: They are not valid.
        """
        return self.peer_settings(extension)

    def require_extension(self, extension: Extension) -> Any:
        """Return the same as `extension`, where there is no way without it.

        Raises:
            CapabilityMissing: The client does not declare it. Let it pass: the client is told what it lacks (error
                -32021 of MCP 2026-07-28).
            ProtocolError: Its settings are not valid.
        """
        found = self.peer_settings(extension)
        if found is None:
            theirs = "client" if self._agreed.dispatcher.role == "server" else "server"
            raise self._agreed.lacking("the request", (theirs, "extensions", extension.id))
        return found

    @property
    def _agreed(self) -> Negotiated:
        agreed = self.negotiated
        if agreed is None:
            raise ConnectionClosed("this context has no connection")
        return agreed

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `_meta` of the request, in wire form."""
        meta = self.scope.meta or getattr(self.params, "meta", None)
        if meta is None and isinstance(self.params, BaseModel):
            meta = (self.params.model_extra or {}).get("_meta")  # revisions that do not name it let it pass
        if isinstance(meta, BaseModel):
            return meta.model_dump()
        return meta if is_object(meta) else {}

    async def request(self, method: Request[Params, Any, Answer], params: Params) -> Answer:
        """Send any request of the method table, or one of your own, and return whatever answers it."""
        self.check(method, params)
        answer: Answer = await self._ask(None, method, params)
        return answer

    async def call(self, method: Request[Params, Result, Any], params: Params) -> Result:
        """Send a request and return its usual result; raise as `ask_by` does."""
        result = await super().call(method, params)
        check_answer(params, result)
        return result

    async def notify(self, method: Notification[Params], params: Params) -> None:
        """Send any notification of the method table, or one of your own.

        Log messages are sent only if the client wants them; neither they nor progress follow the end of the request.
        """
        if method.filter is not None and self.request_id is not None:
            raise RuntimeError(f"{method.name} is for those who listen: see Server.broadcast")
        agreed = self.negotiated
        if agreed is not None:
            revision, spoken = self._words, agreed.dispatcher.revision
            if self.request_id is None and method.extension is not None and not _is_known(method, agreed):
                return
            if self.request_id is None and not spoken.era.is_followed(self.link, method, params):
                return
            if method is revision.log and not agreed.wants(getattr(params, "level", LEVELS[-1])):
                return
            if (method is revision.log or method is revision.progress) and self.scope.is_over:
                return
            if method is revision.progress and not self._advances(params):
                return
        self.check(method, params)
        await self._tell(method, params)

    async def _tell(self, method: Notification[Any], params: Any) -> None:
        await self.link.notify(method, params, related=self.request_id)

    def _advances(self, params: Any) -> bool:
        """Tell whether progress goes on, as each notification of it must; what is told of others is not looked at."""
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
    async def ask(self, message: str, type: Any, *, key: str | None = None) -> Any: ...

    async def ask(self, message: str, type: Any, *, key: str | None = None) -> Any:
        """Ask the user something: `await ctx.ask("Delete it?", bool)`, in the way of the revision that is spoken.

        In a stateful revision the question is a request of its own. In a stateless one the handler ends here, and runs
        again from its beginning once the user has answered: what it does before is then done again. Not for secrets.

        Args:
            message: What the user reads.
            type: What is asked for: `bool`, `str`, `int`, `float`, a date, a `Literal` or enum of texts, a list of one
                (from 2025-11-25), or a flat object of such: a pydantic model, a dataclass or a `TypedDict`.
            key: Names the question among those of this handler; by default its message does.

        Returns:
            The answer. Who declines a question for a `bool` has said no: that is `False`.

        Raises:
            NotAnswered: The user declined or cancelled, or the client answered something else. A tool may let it pass.
            CapabilityMissing: The client, or its revision, has no way to ask the user.
            ValueError: The key names two questions of this handler.
            TypeError: No form of the revision asks for such a type.
        """
        form = Form(type)
        method = self._asks(ELICIT)
        answer = await self.ask_by(self._once(key or message), method, form.params(method, message, self.revision))
        return form.read(message, answer)

    async def sample(
        self,
        prompt: str,
        *,
        max_tokens: int = 1000,
        system_prompt: str | None = None,
        temperature: float | None = None,
        key: str | None = None,
    ) -> str:
        """Let a model of the client write an answer to a prompt, and return its text.

        Args:
            prompt: What the user of the model says.
            max_tokens: The most tokens to write.
            system_prompt: The system prompt that the server would like.
            temperature: How random the answer is, on the scale of the provider.
            key: Names the question among those of this handler; by default its prompt does.

        Raises:
            CapabilityMissing: The client has no model to share.
            UnexpectedAnswer: The model wrote no text.
            ValueError: The key names two questions of this handler.
        """
        method = self._asks(SAMPLE)
        params = sampling_params(method, prompt, max_tokens, system_prompt, temperature)
        return text_of(method, await self.ask_by(self._once(key or prompt), method, params))

    async def roots(self) -> list[Root]:
        """Return the directories and files that the user works in; raise `CapabilityMissing` if none can be said."""
        method = self._asks(LIST_ROOTS)
        answer = await self.ask_by(method.name, method, jsonrpc.typed_params(method, {}))
        return [Root(root.uri, root.name) for root in answer.roots]

    def _asks(self, name: str) -> Request[Any, Any, Any]:
        """Return the method of a question; raise `CapabilityMissing` if the revision does not have it."""
        revision = self._words
        method = revision.methods.get(name)
        if not isinstance(method, Request):
            raise CapabilityMissing(name, ("client", name.partition("/")[0]), revision.name)
        return method

    def _once(self, key: str) -> str:
        """Return a key that is new; raise `ValueError` if this handler has used it for another question."""
        if key in self._asked:
            raise ValueError(f"two questions have the key {key!r}: give each a key of its own, ask(..., key=...)")
        self._asked.add(key)
        return key

    async def ask_by(self, key: str, method: Request[Params, Result, Any], params: Params) -> Result:
        """Ask the client something, as `ask_params` does, by a method of your choice.

        Raises:
            NotAnswered: The content of a form does not fit the schema that the form was requested with.
            CapabilityMissing: The client did not declare what the question needs.
        """
        self.check(method, params)
        answer: Any = await self._ask(key, method, params)
        if isinstance(answer, method.alternatives):
            raise UnexpectedAnswer(method.name, answer)
        check_answer(params, answer)
        result: Result = answer
        return result

    async def _ask(self, key: str | None, method: Request[Any, Any, Any], params: Any) -> Any:
        if method.carrier != "embedded":
            return await self.link.request(method, params, related=self.request_id)
        if self._questions is None:
            raise RuntimeError(f"{method.name} can only be asked while a request runs that may be answered in rounds")
        return await self._questions.ask(key or self._questions.next_key(method.name), method, params)

    def close_stream(self, retry: float = 1.0) -> bool:
        """Close the stream to the client while the request goes on; the client reconnects for the rest.

        Args:
            retry: After how many seconds it should.

        Returns:
            Whether that was possible: what is sent meanwhile is kept, and the client knows how to come back.
        """
        return self.link.close_stream(self.request_id, round(retry * 1000))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the other side how far the request is; do nothing when it did not ask.

        Args:
            progress: How much is done; it must grow from call to call, or else it is not sent.
            total: How much there is in all, if known.
            message: What is going on (from 2025-03-26).
        """
        if self._token is None:
            self._token = self.meta.get("progressToken")
            if self._token is None:
                return
        wire = {"progressToken": self._token, "progress": progress, "total": total, "message": message}
        await self._notify(self._words.progress, wire)

    async def debug(self, data: Any, logger: str | None = None) -> None:
        """Send a log message for those who look for a mistake; see `log`."""
        await self.log("debug", data, logger)

    async def info(self, data: Any, logger: str | None = None) -> None:
        """Send a log message about what is as it should be; see `log`."""
        await self.log("info", data, logger)

    async def warning(self, data: Any, logger: str | None = None) -> None:
        """Send a log message about what may go wrong; see `log`."""
        await self.log("warning", data, logger)

    async def error(self, data: Any, logger: str | None = None) -> None:
        """Send a log message about what went wrong; see `log`."""
        await self.log("error", data, logger)

    async def log(self, level: Level, data: Any, logger: str | None = None) -> None:
        """Send a log message, unless the client does not want it.

        Args:
            level: How severe it is.
            data: Any JSON value.
            logger: Which part of the server speaks.
        """
        await self._notify(self._words.log, {"level": level, "data": data, "logger": logger})

    async def _notify(self, method: Notification[Any] | None, wire: dict[str, Any]) -> None:
        if method is None:
            raise RuntimeError("this revision has no such notification")
        known = {key: value for key, value in wire.items() if value is not None or key == "data"}
        await self.notify(method, jsonrpc.typed_params(method, known))


def _is_known(method: Notification[Any], agreed: Negotiated) -> bool:
    """Tell whether a client has declared the extension that a notification belongs to, if it has to."""
    return method.declared_by == "server" or is_declared(agreed.declared["client"], "extensions", str(method.extension))
