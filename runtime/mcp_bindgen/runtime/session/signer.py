"""Signed state that clients carry between the rounds of a request (MCP 2026-07-28, "Multi Round-Trip Requests")."""

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

from ..model.json_types import is_object
from ..protocol.errors import INVALID_PARAMS, ProtocolError


def _fresh() -> tuple[bytes, ...]:
    return (secrets.token_bytes(32),)


@dataclass(frozen=True)
class RequestStateSigner:
    """Signs state that clients carry between rounds, and verifies it. Clients can read the state but not change it.

    Attributes:
        keys: Secrets of at least 16 bytes. The first key signs; all keys verify, so keys can be rotated. Processes that
            serve the same clients share them; by default each process has its own.
        lifetime: Seconds for which a state is valid.
        clock: Returns the time in seconds.
    """

    keys: Sequence[bytes] = field(default_factory=_fresh, repr=False)
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


def _refused() -> ProtocolError:
    return ProtocolError(INVALID_PARAMS, "requestState is not valid for this request")


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode()


def _bytes(text: str) -> bytes:
    data = urlsafe_b64decode(text.encode("ascii"))
    if _text(data) != text:  # base64 has several spellings of the same bytes; only ours is valid
        raise ValueError(text)
    return data
