"""Comparison of a recorded exchange with the same request to a live server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jsonschema_rs

from mcp_bindgen.contract.comparison.compare import compare_contracts
from mcp_bindgen.contract.document import contract_of_valid
from mcp_bindgen.contract.model import LISTINGS
from mcp_bindgen.drift.callers import callers
from mcp_bindgen.runtime.model.json_types import ABSENT, Path, as_object, differences, same_json
from mcp_bindgen.runtime.protocol.methods import DISCOVER
from mcp_bindgen.spec.errors import BadInput, shortened
from mcp_bindgen.spec.json import is_array, is_object, join, split

from .recording import Exchange, canonical, shown
from .trace import meta_keys

Verdict = Literal["same", "fits", "different", "skipped"]

_MAX_DIFFERENCES = 20  # of one request
_MAX_SHOWN = 100  # characters of a value
_OPAQUE = {"nextCursor": "cursor", "requestState": "requestState"}
"""Member of a result with a text that only its server understands -> the member of params that returns it."""


@dataclass(frozen=True)
class Difference:
    """Difference between the recorded response and the live one.

    Attributes:
        pointer: JSON Pointer into the response; empty for findings about a contract.
        text: The difference in a sentence.
    """

    pointer: str
    text: str

    def __str__(self) -> str:
        """Return the difference in one line."""
        return f"{self.pointer}: {self.text}" if self.pointer else self.text


@dataclass(frozen=True)
class Compared:
    """Result for one recorded request.

    Attributes:
        line: Line of the request in the recording.
        request: The request in a short line.
        verdict: `same`; `fits` if structured content has another value that its recorded schema allows; `different`; or
            `skipped`.
        differences: The differences; for a skipped request, the reason.
    """

    line: int
    request: str
    verdict: Verdict
    differences: tuple[Difference, ...] = ()


class Comparison:
    """Comparison of the exchanges of one recording.

    Args:
        recorded: The recorded exchanges.
        ignored: JSON Pointers into results whose values may differ; `*` stands for any step.
    """

    def __init__(self, recorded: Iterable[Exchange], ignored: Sequence[str] = ()) -> None:
        self._ignored = [split(pointer) for pointer in ignored]
        self._schemas: dict[str, Any] = {}
        self._live: dict[str, str] = {}
        for exchange in recorded:
            for tool in _objects(as_object(exchange.response.get("result")).get("tools")):
                if "outputSchema" in tool:
                    self._schemas[str(tool.get("name"))] = tool["outputSchema"]

    def params(self, exchange: Exchange) -> dict[str, Any]:
        """Return the params to send: cursors and states are those that the live server gave for the recorded ones."""
        names = _OPAQUE.values()
        return {
            key: self._live.get(str(value), value) if key in names else value for key, value in exchange.params.items()
        }

    def compare(self, recorded: Exchange, live: Exchange | None) -> Compared:
        """Return the differences of a live exchange."""
        found, are_values = self._differences(recorded, live)
        fits = are_values and self._fits(recorded, live)
        verdict: Verdict = "fits" if fits else "different" if found else "same"
        return Compared(recorded.line, recorded.title, verdict, tuple(found[:_MAX_DIFFERENCES]))

    def _differences(self, recorded: Exchange, live: Exchange | None) -> tuple[list[Difference], bool]:
        """Return the differences, and whether all of them are values of structured content."""
        if live is None or not live.response:
            return [Difference("", "there is no response now")], False
        found: list[Difference] = []
        asked, asks = _questions(recorded), _questions(live)
        if asked != asks:
            found.append(Difference("", f"the server asked {_list(asked)}, and asks {_list(asks)} now"))
        old, new = recorded.response, live.response
        if "error" in old or "error" in new:
            return [*found, *self._values(old.get("error", ABSENT), new.get("error", ABSENT), ["error"])], False
        before, now = self._settled(recorded, old.get("result")), self._settled(recorded, new.get("result"))
        if not (is_object(before) and is_object(now)):
            return [*found, *self._values(before, now, ["result"])], False
        for name in _OPAQUE:
            if isinstance(before.get(name), str) and isinstance(now.get(name), str):
                self._live[before.pop(name)] = now.pop(name)
        for member in LISTINGS.keys() & before.keys() & now.keys():
            found += self._contracts(member, before.pop(member), now.pop(member))
        structured = before.pop("structuredContent", ABSENT), now.pop("structuredContent", ABSENT)
        if _mirrors(before, structured[0]) and _mirrors(now, structured[1]):
            del before["content"], now["content"]
        values = list(self._values(*structured, ["result", "structuredContent"]))
        rest = list(self._values(before, now, ["result"]))
        are_values = bool(values) and structured[1] is not ABSENT and not (found or rest)
        return [*found, *values, *rest], are_values

    def _settled(self, exchange: Exchange, result: Any) -> Any:
        """Return a copy of a result; who the server is, counts once only, at the beginning of the connection."""
        if not is_object(result):
            return result
        meta = result.get("_meta")
        if exchange.method == DISCOVER or not is_object(meta):
            return dict(result)
        rest = {key: value for key, value in meta.items() if key not in meta_keys().values()}
        return {**result, "_meta": rest} if rest else {key: value for key, value in result.items() if key != "_meta"}

    def _contracts(self, member: str, recorded: Any, live: Any) -> Iterator[Difference]:
        """Yield the findings of the comparison of contracts; the differences of values if it has none."""
        if same_json(recorded, live):
            return
        try:
            old, new = contract_of_valid({member: recorded}), contract_of_valid({member: live})
            compared = compare_contracts(old, new, callers())
            findings = [f"{one.verdict.name.lower()}: {one.sentence}" for one in compared.findings]
            findings += [
                f"text: {one.kind} {one.name}: {place} changed" for one in compared.texts for place, *_ in one.texts
            ]
        except BadInput:
            findings = []
        yield from (Difference("", finding) for finding in findings)
        if not findings:
            key = LISTINGS[member].key
            old_by, new_by = ({str(one.get(key)): one for one in _objects(side)} for side in (recorded, live))
            yield from self._values(old_by, new_by, ["result", member])

    def _fits(self, recorded: Exchange, live: Exchange | None) -> bool:
        """Return whether the recorded schema of the tool allows the live structured content."""
        schema = self._schemas.get(str(recorded.params.get("name")))
        result = live.response.get("result") if live is not None else None
        if schema is None or not is_object(result):
            return False
        try:
            validator = jsonschema_rs.validator_for(schema, validate_formats=False, offline=True)
            return validator.is_valid(result.get("structuredContent"))
        except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
            return False

    def _values(self, old: Any, new: Any, path: list[str]) -> Iterator[Difference]:
        """Yield the places where two values differ."""
        for place, was, now in differences(old, new, tuple(path)):
            if not self._is_ignored(place[1:]):
                yield Difference(join("", *place), f"was {_value(was)}, is {_value(now)}")

    def _is_ignored(self, path: Path) -> bool:
        return any(
            len(pattern) <= len(path) and all(one in ("*", str(step)) for one, step in zip(pattern, path, strict=False))
            for pattern in self._ignored
        )


def _questions(exchange: Exchange) -> list[str]:
    return [
        shown(str(one.message.get("method")), {}) + " " + canonical(one.message.get("params"))
        for one in exchange.before
        if one.is_request
    ]


def _list(questions: Sequence[str]) -> str:
    return ", ".join(one[:_MAX_SHOWN] for one in questions) or "nothing"


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if is_object(one)] if is_array(value) else []


def _mirrors(result: Mapping[str, Any], structured: Any) -> bool:
    """Return whether the content of a result is the JSON text of its structured content."""
    content = _objects(result.get("content"))
    if structured is ABSENT or len(content) != 1 or not isinstance(content[0].get("text"), str):
        return False
    try:
        return same_json(json.loads(content[0]["text"]), structured)
    except (ValueError, RecursionError):
        return False


def _value(value: Any) -> str:
    if value is ABSENT:
        return "absent"
    return shortened(json.dumps(value, ensure_ascii=False), _MAX_SHOWN)
