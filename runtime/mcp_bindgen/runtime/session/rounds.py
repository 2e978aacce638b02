"""Multi round-trip requests: questions in results, their answers, and the signed state that clients carry.

MCP 2026-07-28, "Multi Round-Trip Requests".
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import Any, cast

import anyio
import anyio.lowlevel
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from ..model.json_types import is_object
from ..model.validation import problems
from ..protocol import jsonrpc
from ..protocol.envelope import invalid_answer
from ..protocol.errors import INVALID_PARAMS, InvalidParams, ProtocolError, UnexpectedAnswer
from ..protocol.methods import RequestMethod, result_type

_MAX_ROUNDS = 32
_PAUSE = 0.1  # seconds before the next round of a result without questions


class InputRequired(BaseException):
    """Raised to leave a handler until its client has answered. `except Exception` does not catch it."""


def _nothing() -> dict[str, Any]:
    return {}  # each request has two, and `dict[str, Any]()` takes several times as long


@dataclass(eq=False)
class Questions:
    """Questions of a handler, and the answers of earlier rounds.

    Attributes:
        answers: Key -> answer, in wire form or typed.
        used: Answers that the handler has used, in wire form.
        open: Key -> unanswered request, in wire form.
        round: Number of this round, from 1.
    """

    answers: Mapping[str, Any]
    used: dict[str, Any] = field(default_factory=_nothing)
    open: dict[str, Any] = field(default_factory=_nothing)
    round: int = 1
    _counted: int = 0

    def next_key(self, method: str) -> str:
        """Return a key for a question without a key: its position in the handler."""
        self._counted += 1
        return f"{method}#{self._counted}"

    async def ask(self, key: str, method: RequestMethod[Any, Any], params: object) -> Any:
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


def _asks_for_input(kind: Any) -> bool:
    return result_type(kind) == "input_required"


asks_for_input: Callable[[Any], bool] = cache(_asks_for_input)
"""Return whether a class of results asks for input."""


def other_than_required(error: BaseException) -> BaseException | None:
    """Return the error of a handler without `InputRequired`, which may share an exception group with other errors."""
    if isinstance(error, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", error).split(InputRequired)[1]
    return None if isinstance(error, InputRequired) else error


async def settle_rounds(
    method: RequestMethod[Any, Any],
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


def understood(method: RequestMethod[Any, Any], answer: Any) -> Any:
    """Return a result if its `resultType` is that of its class; else raise `ProtocolError`."""
    expected = result_type(type(answer))
    if expected is not None and answer.result_type != expected:
        raise invalid_answer(f"the result of {method.name} is of an unknown kind: {answer.result_type!r}")
    return answer


@dataclass(frozen=True)
class RequestStateSigner:
    """Signs state that clients carry between rounds, and verifies it. Clients can read the state but not change it.

    Attributes:
        keys: Secrets of at least 16 bytes. The first key signs; all keys verify, so keys can be rotated. Processes that
            serve the same clients share them; by default each process has its own.
        lifetime: Seconds for which a state is valid.
        clock: Returns the time in seconds.

    Raises:
        ValueError: There is no key, or a key is shorter than 16 bytes.
    """

    keys: Sequence[bytes] = field(default_factory=lambda: (secrets.token_bytes(32),), repr=False)
    lifetime: float = 600.0
    clock: Callable[[], float] = field(default=time.time, repr=False)

    def __post_init__(self) -> None:
        if not self.keys or any(len(key) < 16 for key in self.keys):
            raise ValueError("a signer needs keys of at least 16 bytes")

    def sign(self, state: object, purpose: object) -> str:
        """Return the signed text of a state.

        Args:
            state: Any JSON value.
            purpose: Purpose of the state: any JSON value; `verify` needs the same one.
        """
        body = to_json({"until": self.clock() + self.lifetime, "state": state})
        return f"{_text(body)}.{_text(self._mac(self.keys[0], body, purpose))}"

    def verify(self, text: str, purpose: object) -> Any:
        """Return the state in `text`.

        Raises:
            ProtocolError: -32602, the text is not ours, changed, for another purpose, or expired.
        """
        head, _, tail = text.partition(".")
        try:
            body, signature = _bytes(head), _bytes(tail)
        except ValueError:
            raise _refused() from None
        if not any(hmac.compare_digest(signature, self._mac(key, body, purpose)) for key in self.keys):
            raise _refused()
        content = from_json(body)
        if not is_object(content) or content["until"] < self.clock():
            raise ProtocolError(INVALID_PARAMS, "requestState has expired")
        return content["state"]

    def _mac(self, key: bytes, body: bytes, purpose: object) -> bytes:
        bound = sha256(json.dumps(purpose, sort_keys=True).encode()).digest()
        return hmac.digest(key, bound + body, "sha256")


PROCESS_SIGNER = RequestStateSigner()
"""Signer of this process."""


def _refused() -> ProtocolError:
    return ProtocolError(INVALID_PARAMS, "requestState is not valid for this request")


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode()


def _bytes(text: str) -> bytes:
    data = urlsafe_b64decode(text.encode("ascii"))
    if _text(data) != text:  # base64 has several spellings of the same bytes; only ours is valid
        raise ValueError(text)
    return data
