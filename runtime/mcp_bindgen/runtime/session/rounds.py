"""Multi round-trip requests: questions in results, their answers, and the signed state between rounds.

MCP 2026-07-28, "Multi Round-Trip Requests".
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, cast

import anyio
import anyio.lowlevel
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from ..model.base import Model
from ..model.json_types import is_object
from ..model.validation import problems
from ..protocol import jsonrpc
from ..protocol.envelope import invalid_answer
from ..protocol.errors import (
    INVALID_PARAMS,
    InvalidParams,
    ProtocolError,
    UnexpectedAnswer,
)
from ..protocol.methods import Request, result_type

_MOST_ROUNDS = 32
_PAUSE = 0.1  # seconds before a request is made again that asks for nothing


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


async def settle(client: Any, method: Request[Any, Any, Any], params: Any, answer: Any) -> Any:
    """Answer what the server asks, with the client's own handlers, until it returns a result.

    Raises:
        MethodNotFound: It asks something that the client has no handler for.
        UnexpectedAnswer: It does not stop asking.
    """
    for _ in range(_MOST_ROUNDS):
        if not asks_for_input(type(answer)):
            return answer
        questions: dict[str, Any] = answer.input_requests or {}
        if not questions:
            await anyio.sleep(_PAUSE)
        responses = {key: await _answer(client, question) for key, question in questions.items()}
        more = {"input_responses": responses or None, "request_state": answer.request_state}
        answer = await client.request(method, params.model_copy(update=more))
    raise UnexpectedAnswer(method.name, answer)


async def _answer(client: Any, question: Any) -> Any:
    answer = await client.answer(question.method, question.params)
    asked = client.dispatcher.revision.request(question.method)
    return answer if isinstance(answer, Model) else jsonrpc.typed_result(asked, answer)


def understood(method: Request[Any, Any, Any], answer: Any) -> Any:
    """Return `answer`, if it is of the kind that it says it is; raise `ProtocolError`."""
    field = getattr(cast(Any, type(answer)), "model_fields", {}).get("result_type")
    if field is not None and answer.result_type != field.default:
        raise invalid_answer(f"the result of {method.name} is of an unknown kind: {answer.result_type!r}")
    return answer


def _fresh() -> tuple[bytes, ...]:
    return (secrets.token_bytes(32),)


@dataclass(frozen=True)
class RequestStateSigner:
    """Seals state and opens it again.

    Attributes:
        keys: Secrets of at least 16 bytes. The first one seals, all of them open, so that keys can be replaced while
            requests are on their way. Processes that serve the same clients share them; by default each has its own.
        lifetime: Seconds for which a state is good.
        clock: Tells the time, in seconds.
    """

    keys: Sequence[bytes] = field(default_factory=_fresh, repr=False)
    lifetime: float = 600.0
    clock: Callable[[], float] = field(default=time.time, repr=False)

    def __post_init__(self) -> None:
        if not self.keys or any(len(key) < 16 for key in self.keys):
            raise ValueError("a seal needs keys of at least 16 bytes")

    def sign(self, state: Any, purpose: Any) -> str:
        """Return a text that carries `state`.

        Args:
            state: Any JSON value.
            purpose: What the state is good for: any JSON value that is the same again when it is opened.
        """
        body = to_json({"until": self.clock() + self.lifetime, "state": state})
        return f"{_text(body)}.{_text(self._mac(self.keys[0], body, purpose))}"

    def verify(self, text: str, purpose: Any) -> Any:
        """Return the state in `text`.

        Raises:
            ProtocolError: -32602, it is not ours, was changed, is for something else, or is too old.
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

    def _mac(self, key: bytes, body: bytes, purpose: Any) -> bytes:
        bound = sha256(json.dumps(purpose, sort_keys=True).encode()).digest()
        return hmac.digest(key, bound + body, "sha256")


def _refused() -> ProtocolError:
    return ProtocolError(INVALID_PARAMS, "requestState is not valid for this request")


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode()


def _bytes(text: str) -> bytes:
    data = urlsafe_b64decode(text.encode("ascii"))
    if _text(data) != text:  # there are many spellings of the same bytes, and only one is ours
        raise ValueError(text)
    return data
