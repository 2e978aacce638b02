"""Multi round-trip requests: questions in results, and their answers.

MCP 2026-07-28, "Multi Round-Trip Requests".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import anyio
import anyio.lowlevel
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from ..model.validation import problems
from ..protocol import jsonrpc
from ..protocol.envelope import invalid_answer
from ..protocol.errors import (
    InvalidParams,
    UnexpectedAnswer,
)
from ..protocol.methods import Request, result_type

_MAX_ROUNDS = 32
_PAUSE = 0.1  # seconds before the next round of a result without questions


class InputRequired(BaseException):
    """Raised to leave a handler until its client has answered. `except Exception` does not catch it."""


@dataclass(eq=False)
class Questions:
    """Questions of a handler, and the answers of earlier rounds.

    Attributes:
        answers: Key -> answer, in wire form or typed.
        used: Answers that the handler has used, in wire form.
        open: Key -> unanswered request, in wire form.
    """

    answers: Mapping[str, Any]
    used: dict[str, Any] = field(default_factory=dict[str, Any])
    open: dict[str, Any] = field(default_factory=dict[str, Any])
    _counted: int = 0

    def next_key(self, method: str) -> str:
        """Return a key for a question without a key: its position in the handler."""
        self._counted += 1
        return f"{method}#{self._counted}"

    async def ask(self, key: str, method: Request[Any, Any, Any], params: object) -> Any:
        """Return the answer under `key`; without an answer, end the handler until the next round.

        Raises:
            InvalidParams: The answer is invalid.
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


asks_for_input: Callable[[Any], bool] = cache(lambda kind: result_type(kind) == "input_required")
"""Return whether a class of results asks for input."""


def other_than_required(error: BaseException) -> BaseException | None:
    """Return the error of a handler without `InputRequired`, which may share an exception group with other errors."""
    if isinstance(error, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", error).split(InputRequired)[1]
    return None if isinstance(error, InputRequired) else error


async def settle_rounds(
    method: Request[Any, Any, Any],
    params: Any,
    answer: Any,
    ask: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]],
    again: Callable[[Any], Awaitable[Any]],
) -> Any:
    """Return the final result of a request that is answered in rounds.

    Args:
        method: The method.
        params: Its typed params.
        answer: The result of the first round.
        ask: Returns key -> typed answer, given key -> question of a result.
        again: Sends or handles the request once more, given its params, and returns the result.

    Raises:
        UnexpectedAnswer: The result still has questions after 32 rounds.
    """
    for _ in range(_MAX_ROUNDS):
        if not asks_for_input(type(answer)):
            return answer
        questions: dict[str, Any] = answer.input_requests or {}
        if not questions:
            await anyio.sleep(_PAUSE)
        more = {"input_responses": await ask(questions) or None, "request_state": answer.request_state}
        answer = await again(params.model_copy(update=more))
    raise UnexpectedAnswer(method.name, answer)


def understood(method: Request[Any, Any, Any], answer: Any) -> Any:
    """Return a result if its `resultType` is that of its class; else raise `ProtocolError`."""
    expected = result_type(type(answer))
    if expected is not None and answer.result_type != expected:
        raise invalid_answer(f"the result of {method.name} is of an unknown kind: {answer.result_type!r}")
    return answer
