"""Ask the client questions inside of results: the handler runs again once they are answered.

MCP 2026-07-28, "Multi Round-Trip Requests".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import anyio.lowlevel
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from ...model.validation import problems
from ...protocol import jsonrpc
from ...protocol.errors import InvalidParams, UnexpectedAnswer
from ...protocol.methods import Request, result_type

_MAX_ROUNDS = 32
_PAUSE_SECONDS = 0.1  # before a request that asks nothing is sent again


class InputRequired(BaseException):
    """Leaves a handler that cannot go on before its client has answered. `except Exception` lets it pass."""


@dataclass(eq=False)
class Questions:
    """The questions of a handler while it runs, and the answers to what it asked when it ran before.

    Attributes:
        answers: Key -> answer, in wire form or typed.
        used: The answers that the handler has looked at, in wire form.
        open: Key -> the request that is not answered yet, in wire form.
    """

    answers: Mapping[str, Any]
    used: dict[str, Any] = field(default_factory=dict[str, Any])
    open: dict[str, Any] = field(default_factory=dict[str, Any])
    _counted: int = 0

    def next_key(self, method: str) -> str:
        """Return a key for a question that has none: its position among those of this handler."""
        self._counted += 1
        return f"{method}#{self._counted}"

    async def ask(self, key: str, method: Request[Any, Any, Any], params: Any) -> Any:
        """Return the answer under `key`; without one, end the handler, which runs again when the answer has come.

        Raises:
            InvalidParams: The client answered with something that is not an answer to this.
        """
        if key not in self.answers:
            question: dict[str, Any] = {"method": method.name}
            if params is not None:
                question["params"] = jsonrpc.plain(params)
            self.open[key] = question
            await anyio.lowlevel.checkpoint()  # concurrent questions are asked in the same round
            raise InputRequired
        answer = self.answers[key]
        data = answer.model_dump_json().encode() if isinstance(answer, BaseModel) else to_json(answer)
        try:
            typed = jsonrpc.result_reader(method).validate_json(data)
        except ValidationError as error:
            raise InvalidParams(method.name, problems(error, f"params.inputResponses.{key}", data)) from None
        self.used[key] = jsonrpc.plain(typed)
        return typed


def asks_for_input(kind: Any) -> bool:
    """Tell whether a class of results asks for input: what it is, and not what else it has, says so."""
    return result_type(kind) == "input_required"


def other_than_required(error: BaseException) -> BaseException | None:
    """Return what ended a handler beside `InputRequired`; tasks that ask may share a task group with others."""
    if isinstance(error, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", error).split(InputRequired)[1]
    return None if isinstance(error, InputRequired) else error


async def settle_rounds(
    method: Request[Any, Any, Any],
    params: Any,
    answer: Any,
    ask: Callable[[Any], Awaitable[Any]],
    again: Callable[[Any], Awaitable[Any]],
) -> Any:
    """Return the final result of a request that is answered in rounds.

    Args:
        method: The method.
        params: Its typed params.
        answer: The result of the first round.
        ask: Returns the answer to one question of a result.
        again: Sends or handles the request once more, given its params, and returns the result.

    Raises:
        UnexpectedAnswer: The result still has questions after 32 rounds.
    """
    for _ in range(_MAX_ROUNDS):
        if not asks_for_input(type(answer)):
            return answer
        questions: dict[str, Any] = answer.input_requests or {}
        if not questions:
            await anyio.sleep(_PAUSE_SECONDS)
        responses = {key: await ask(question) for key, question in questions.items()}
        more = {"input_responses": responses or None, "request_state": answer.request_state}
        answer = await again(params.model_copy(update=more))
    raise UnexpectedAnswer(method.name, answer)
