"""Wait for tasks as a client: `call_tool` gives the result, `start_tool` a handle (extension "Tasks")."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import anyio

from mcp_bindgen.runtime.model.base import Model
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.envelope import invalid_answer
from mcp_bindgen.runtime.protocol.errors import INTERNAL_ERROR, ConnectionClosed, ProtocolError
from mcp_bindgen.runtime.protocol.extension import Extension, ExtensionResult
from mcp_bindgen.runtime.protocol.methods import Request
from mcp_bindgen.runtime.session import rounds
from mcp_bindgen.runtime.session.client import Client

CALL, GET, UPDATE, CANCEL = "tools/call", "tasks/get", "tasks/update", "tasks/cancel"

Params = TypeVar("Params")
Result = TypeVar("Result")

_SHORTEST, _LONGEST = 0.02, 60.0  # seconds between two looks, whatever the server suggests
_POLL = 1.0  # seconds, where it suggests nothing
_LAST = 5.0  # seconds for the word that a task is not needed any more
_MOST_QUESTIONS = 1000  # of one task, that handlers answer
_PATIENCE, _PAUSE = 60.0, 0.5  # seconds for which a server that was there may be away, and between two tries


class TaskCancelled(Exception):
    """A task was cancelled, so there is no result.

    Attributes:
        id: The task.
    """

    def __init__(self, id: str, message: str | None) -> None:
        super().__init__(f"the task was cancelled{f': {message}' if message else ''}")
        self.id = id


class Task(Generic[Result]):
    """A request that goes on at the server. Keep its `id`: `client.task(id)` finds it again, also after a restart.

    Args:
        client: Who asks for it.
        method: What it answers.
        id: Its id.
        result: What the server has answered at once, if it has.

    Attributes:
        id: The same; empty where the server has answered at once.
        is_over: Whether it is known to be over.
    """

    def __init__(
        self, client: ClientEngine, method: Request[Any, Result, Any], id: str, result: Result | None = None
    ) -> None:
        self.id = id
        self._client = client
        self._method = method
        self._answered: set[str] = set()
        self._result = result
        self.is_over = result is not None

    async def status(self) -> Any:
        """Ask the server how far the task is.

        Returns:
            The task as it is now, typed by its status: what it asks, its result or its error.

        Raises:
            ProtocolError: -32602, there is no such task, or it has expired; -32600, the server tells of another task.
        """
        found = await self._client.tasks_request(GET, {"taskId": self.id})
        if found.task_id != self.id:
            raise invalid_answer(f"{GET} was answered with another task")
        return found

    async def cancel(self) -> None:
        """Tell the server that the task is not needed any more; it may end it, or not."""
        if self._result is None:
            await self._client.tasks_request(CANCEL, {"taskId": self.id})

    async def answer(self, answers: Mapping[str, Any]) -> None:
        """Answer what the task asks, all or some of it.

        Args:
            answers: Key of a question -> result, typed or in wire form.
        """
        wire = {key: jsonrpc.plain(one) if isinstance(one, Model) else one for key, one in answers.items()}
        await self._client.tasks_request(UPDATE, {"taskId": self.id, "inputResponses": wire})

    async def updates(self) -> AsyncGenerator[Any]:
        """Yield the task as `status` gives it, and again whenever it has changed, until it is over.

        The server is asked as often as it suggests. While it is away for a moment, it is asked again.
        """
        known = None
        while self._result is None:
            found = await self._insist(self.status)
            if found != known:
                known = found
                yield found
            if found.status not in ("working", "input_required"):
                self.is_over = True
                return
            suggested = _POLL if found.poll_interval_ms is None else found.poll_interval_ms / 1000
            await anyio.sleep(min(max(suggested, _SHORTEST), _LONGEST))

    async def _insist(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Ask the server something that it may be asked twice; wait for a while where it is away."""
        end = anyio.current_time() + _PATIENCE
        while True:
            try:
                return await ask()
            except (ConnectionClosed, ProtocolError) as error:
                away = isinstance(error, ConnectionClosed) or error.code == INTERNAL_ERROR  # as its store of tasks is
                if not away or self._client.link.closed.is_set() or anyio.current_time() > end:
                    raise
            await anyio.sleep(_PAUSE)

    async def result(self) -> Result:
        """Wait until the task is over; what it asks meanwhile, the handlers of the client answer.

        Raises:
            ProtocolError: The request failed, there is no such task any more, or it does not stop asking.
            TaskCancelled: The task was cancelled.
            MethodNotFound: It asks something that the client has no handler for.
        """
        async for found in self.updates():
            if found.status == "input_required":
                await self._answer(found.input_requests)
            elif found.status == "completed":
                return jsonrpc.typed_result(self._method, jsonrpc.plain(found)["result"])  # type: ignore[no-any-return]
            elif found.status == "failed":
                error = jsonrpc.plain(found)["error"]
                raise ProtocolError(error["code"], error["message"], error.get("data"))
            elif found.status == "cancelled":
                raise TaskCancelled(self.id, found.status_message)
        assert self._result is not None
        return self._result

    async def _answer(self, questions: Mapping[str, Any]) -> None:
        """Answer what was not answered yet, by the handlers of the client, together."""
        answers: dict[str, Any] = {}
        for key, question in questions.items():
            if key not in self._answered:
                if len(self._answered) + len(answers) >= _MOST_QUESTIONS:
                    raise invalid_answer("the task does not stop asking")
                answers[key] = await self._client.answer(question.method, question.params)
        if answers:
            await self._insist(partial(self.answer, answers))
            self._answered.update(answers)


class ClientEngine(Client):
    """The base of generated clients that understand tasks.

    Attributes:
        tasks_extension: The generated facts of the extension.
    """

    tasks_extension: ClassVar[Extension]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "adds" in vars(cls) and ClientEngine in cls.__bases__:
            cls.tasks_extension = vars(cls)["adds"].extension

    async def start_tool(self, name: str, arguments: Mapping[str, Any] | None = None, **more: Any) -> Task[Any]:
        """Call a tool, and return a handle without waiting for the end.

        Args:
            name: Which tool.
            arguments: Values for its input schema, by argument name.
            more: Other params of the call, in wire form.

        Returns:
            The handle; where the server answers at once, it is over already.
        """
        method: Request[Any, Any, Any] = self.dispatcher.revision.request(CALL)
        wire = {"name": name, "arguments": dict(arguments or {}), **more}
        params = jsonrpc.typed_params(method, {**wire, "_meta": {**self.link.metadata(), **more.get("_meta", {})}})
        answer = await rounds.settle(self, method, params, await self.request(method, params))
        if isinstance(answer, self.tasks_extension.types.CreateTaskResult):
            return self._begun(method, answer)
        if isinstance(answer, ExtensionResult):
            answer = await self.settle(method, params, answer)
        return Task(self, method, "", answer)

    def task(self, id: str) -> Task[Any]:
        """Return the handle of a task by its id, which a client may have kept over a restart."""
        return Task(self, self.dispatcher.revision.request(CALL), id)

    async def settle(self, method: Request[Params, Result, Any], params: Params, answer: ExtensionResult) -> Result:
        """Wait for the result of a request that became a task, and cancel that where nobody waits or can answer."""
        if not isinstance(answer, self.tasks_extension.types.CreateTaskResult):
            return await super().settle(method, params, answer)
        task = self._begun(method, answer)
        try:
            result: Result = await task.result()
            return result
        except (ConnectionClosed, TaskCancelled):
            raise
        except BaseException:
            if not task.is_over:
                with anyio.move_on_after(_LAST, shield=True), suppress(Exception):  # what went wrong is raised
                    await task.cancel()
            raise

    def _begun(self, method: Request[Any, Any, Any], answer: Any) -> Task[Any]:
        if method.name not in self.tasks_extension.alternatives:
            raise invalid_answer(f"{method.name} was answered with a task")
        return Task(self, method, answer.task_id)

    async def tasks_request(self, name: str, wire: Mapping[str, Any]) -> Any:
        """Send a request of the extension, given its params in wire form."""
        method: Any = self.tasks_extension.methods[name]
        return await self.call(method, jsonrpc.typed_params(method, {**wire, "_meta": dict(self.link.metadata())}))
