"""Client engine of tasks: `call_tool` waits for the result, `start_tool` returns a handle (extension "Tasks")."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Generic, TypeVar

import anyio

from mcp_bindgen.extension_abi import Extension, ExtensionRoutes
from mcp_bindgen.runtime.model.base import Model
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.envelope import invalid_answer
from mcp_bindgen.runtime.protocol.errors import INTERNAL_ERROR, TOO_MANY_REQUESTS, ConnectionClosed, ProtocolError
from mcp_bindgen.runtime.protocol.extension import ExtensionResult
from mcp_bindgen.runtime.protocol.methods import RequestMethod
from mcp_bindgen.runtime.session.client import Client

CALL, GET, UPDATE, CANCEL = "tools/call", "tasks/get", "tasks/update", "tasks/cancel"

Params = TypeVar("Params")
Result = TypeVar("Result")

_MIN_POLL_SECONDS, _DEFAULT_POLL_SECONDS, _MAX_POLL_SECONDS = 0.02, 1.0, 60.0
_CANCEL_SECONDS = 5.0  # for `tasks/cancel` of a call that was cancelled
_MAX_QUESTIONS = 1000  # of one task
_UNREACHABLE_SECONDS, _RETRY_SECONDS = 60.0, 0.5  # for a known server to be reachable again, and between two tries


class TaskCancelled(Exception):
    """A task was cancelled and has no result.

    Attributes:
        id: The task.
    """

    def __init__(self, id: str, message: str | None) -> None:
        super().__init__(f"the task was cancelled{f': {message}' if message else ''}")
        self.id = id


class Task(Generic[Result]):
    """Handle of a task. `client.task(id)` makes it again from its `id`, also after a restart.

    Args:
        client: The client.
        method: Method of the request that created the task.
        id: Id of the task; empty if the server has answered the request at once.
        result: The result of that answer.
        pause: Seconds until the first poll.

    Attributes:
        id: The same.
        is_over: True if the task is known to be over.
    """

    def __init__(
        self,
        client: ClientEngine,
        method: RequestMethod[Any, Result, Any],
        id: str,
        result: Result | None = None,
        *,
        pause: float = 0.0,
    ) -> None:
        self.id = id
        self._client, self._method = client, method
        self._answered: set[str] = set()
        self._pause = pause
        self._result = result
        self.is_over: bool = result is not None

    async def status(self) -> Any:
        """Ask the server for the state of the task.

        Returns:
            The task, typed by its status: with its questions, result or error.

        Raises:
            ProtocolError: -32602, the task does not exist or has expired; -32600, the answer is about another task.
        """
        return self._own(await self._client.tasks_request(GET, {"taskId": self.id}))

    def _own(self, found: Any) -> Any:
        if found.task_id != self.id:
            raise invalid_answer(f"{GET} was answered with another task")
        return found

    async def cancel(self) -> None:
        """Ask the server to cancel the task; the server may ignore the request."""
        if self._result is None:
            await self._client.tasks_request(CANCEL, {"taskId": self.id})

    async def answer(self, answers: Mapping[str, Any]) -> None:
        """Answer questions of the task; other questions may be answered later.

        Args:
            answers: Key of a question -> result, typed or in wire form.
        """
        await self._client.tasks_request(UPDATE, {"taskId": self.id, "inputResponses": _wire(answers)})

    async def updates(self) -> AsyncGenerator[Any]:
        """Yield the task as `status` returns it, and again after each change, until it is over.

        The client polls at the interval that the server suggests, and retries while the server is unreachable or busy.
        """
        known = None
        while self._result is None:
            found = await self._poll()
            if found != known:
                known = found
                yield found
            if self.is_over:
                return

    async def _poll(self) -> Any:
        """Return the state of the task at the time of the next poll."""
        if self._pause:
            await anyio.sleep(self._pause)
        found = self._own(await self._retried(GET))
        self.is_over = found.status not in ("working", "input_required")
        suggested = _DEFAULT_POLL_SECONDS if found.poll_interval_ms is None else found.poll_interval_ms / 1000
        self._pause = 0.0 if self.is_over else min(max(suggested, _MIN_POLL_SECONDS), _MAX_POLL_SECONDS)
        return found

    async def _retried(self, method: str, **more: object) -> Any:
        """Send an idempotent request about the task; retry while the server or its store is unreachable or too busy."""
        end = anyio.current_time() + _UNREACHABLE_SECONDS
        while True:
            try:
                return await self._client.tasks_request(method, {"taskId": self.id, **more})
            except (ConnectionClosed, ProtocolError) as error:
                is_final = isinstance(error, ProtocolError) and error.code not in (INTERNAL_ERROR, TOO_MANY_REQUESTS)
                if is_final or self._client.link.closed.is_set() or anyio.current_time() > end:
                    raise
            await anyio.sleep(_RETRY_SECONDS)

    async def result(self, *, or_cancel: bool = False) -> Result:
        """Wait until the task is over; the client's handlers answer its questions.

        Args:
            or_cancel: True to cancel the task if the wait fails or is cancelled.

        Raises:
            ProtocolError: The request failed, the task does not exist any more, or it asks too many questions.
            TaskCancelled: The task was cancelled.
            MethodNotFound: The client has no handler for a question.
        """
        if self._result is not None:
            return self._result
        try:
            found = await self._poll()
            while not self.is_over:
                if found.status == "input_required":
                    await self._answer_by_handlers(found.input_requests)
                found = await self._poll()
        except BaseException as error:
            if or_cancel and not isinstance(error, ConnectionClosed):
                with anyio.move_on_after(_CANCEL_SECONDS, shield=True), suppress(Exception):  # keep the first error
                    await self.cancel()
            raise
        if found.status == "failed":
            raise ProtocolError(found.error.code, found.error.message, found.error.data)
        if found.status == "cancelled":
            raise TaskCancelled(self.id, found.status_message)
        result: Result = jsonrpc.typed_result(self._method, found.result)
        return result

    async def _answer_by_handlers(self, questions: Mapping[str, Any]) -> None:
        """Answer all new questions together."""
        new = {key: question for key, question in questions.items() if key not in self._answered}
        if len(self._answered) + len(new) > _MAX_QUESTIONS:
            raise invalid_answer("the task does not stop asking")
        if new:
            await self._retried(UPDATE, inputResponses=_wire(await self._client.answer_all(new)))
            self._answered.update(new)


def _wire(answers: Mapping[str, Any]) -> dict[str, Any]:
    return {key: jsonrpc.plain(one) if isinstance(one, Model) else one for key, one in answers.items()}


class ClientEngine(Client):
    """Base of generated clients that understand tasks.

    Attributes:
        tasks_extension: Generated facts of the extension.
    """

    tasks_extension: ClassVar[Extension]
    adds: ClassVar[ExtensionRoutes]

    def __init_subclass__(cls, **arguments: object) -> None:
        super().__init_subclass__(**arguments)
        if ClientEngine in cls.__bases__:  # the generated class
            cls.tasks_extension = cls.adds.extension

    async def start_tool(self, name: str, arguments: Mapping[str, Any] | None = None, **more: Any) -> Task[Any]:
        """Call a tool, and return a handle without waiting for the result.

        Args:
            name: Name of the tool.
            arguments: Values for its input schema, by argument name.
            more: Other params of the call, in wire form.

        Returns:
            The handle; it is over if the server has answered at once.
        """
        method: RequestMethod[Any, Any, Any] = self.dispatcher.revision.request(CALL)
        wire = {"name": name, "arguments": dict(arguments or {}), **more}
        params = jsonrpc.typed_params(method, {**wire, "_meta": {**self.link.meta, **more.get("_meta", {})}})
        answer = await self.settle_questions(method, params, await self.request(method, params))
        if isinstance(answer, self.tasks_extension.types.CreateTaskResult):
            return self._begun(method, answer.task_id)
        if isinstance(answer, ExtensionResult):
            answer = await self.settle(method, params, answer)
        return Task(self, method, "", answer)

    def task(self, id: str) -> Task[Any]:
        """Return the handle of a task with a known id."""
        return Task(self, self.dispatcher.revision.request(CALL), id)

    async def settle(
        self, method: RequestMethod[Params, Result, Any], params: Params, answer: ExtensionResult
    ) -> Result:
        """Wait for the result of a request that became a task; cancel the task if the wait fails."""
        if not isinstance(answer, self.tasks_extension.types.CreateTaskResult):
            return await super().settle(method, params, answer)
        created: Any = answer
        return await self._begun(method, created.task_id).result(or_cancel=True)

    def _begun(self, method: RequestMethod[Any, Result, Any], id: str) -> Task[Result]:
        if method.name not in self.tasks_extension.alternatives:
            raise invalid_answer(f"{method.name} was answered with a task")
        return Task(self, method, id, pause=_MIN_POLL_SECONDS)

    def tasks_request(self, name: str, wire: Mapping[str, Any]) -> Awaitable[Any]:
        """Send a request of the extension, given its params in wire form."""
        method: Any = self.tasks_extension.methods[name]
        return self.request(method, jsonrpc.typed_params(method, {**wire, "_meta": self.link.meta}))
