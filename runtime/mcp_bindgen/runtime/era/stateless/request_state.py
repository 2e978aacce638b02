"""Seal the state that a client carries from one round of a request to the next: readable by it, but not to be forged.

MCP 2026-07-28, "Multi Round-Trip Requests", server requirements 4 and 5.
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from pydantic_core import from_json, to_json

from ...model.json_types import is_object
from ...protocol.errors import INVALID_PARAMS, ProtocolError


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

    def seal(self, state: Any, purpose: Any) -> str:
        """Return a text that carries `state`.

        Args:
            state: Any JSON value.
            purpose: What the state is good for: any JSON value that is the same again when it is opened.
        """
        body = to_json({"until": self.clock() + self.lifetime, "state": state})
        return f"{_text(body)}.{_text(self._sign(self.keys[0], body, purpose))}"

    def open(self, text: str, purpose: Any) -> Any:
        """Return the state in `text`.

        Raises:
            ProtocolError: -32602, it is not ours, was changed, is for something else, or is too old.
        """
        head, _, tail = text.partition(".")
        try:
            body, signature = _bytes(head), _bytes(tail)
        except ValueError:
            raise _refused() from None
        if not any(hmac.compare_digest(signature, self._sign(key, body, purpose)) for key in self.keys):
            raise _refused()
        content = from_json(body)
        if not is_object(content) or content["until"] < self.clock():
            raise ProtocolError(INVALID_PARAMS, "requestState has expired")
        return content["state"]

    def _sign(self, key: bytes, body: bytes, purpose: Any) -> bytes:
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
