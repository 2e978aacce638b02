"""The tools of a contract: listed verbatim, called with arguments that fit, answered as promised."""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json

from ..core import jsonrpc
from .call_arguments import ABSENT
from .errors import BrokenPromise, InvalidArguments, ToolError
from .feature import Feature, is_several, text_block
from .promises import Promise
from .results import structured_content

_ROOT = "params.arguments"


class Tools(Feature):
    """Answers `tools/list` and `tools/call`."""

    members = ("tools",)

    async def list_tools(self, params: Any, ctx: Any) -> Any:
        """Answers `tools/list`."""
        return self.listing("tools/list", "tools", params)

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        """Answers `tools/call`.

        Raises:
            ProtocolError: There is no such tool, or the arguments do not fit it.
            BrokenPromise: The tool gave something else than the contract says.
        """
        promise = self.find("tool", params.name)
        try:
            answer = await promise.keep(self._arguments(promise, params.arguments or {}), ctx)
        except ToolError as error:
            return self.typed("tools/call", {"content": [text_block(error.text)], "isError": True})
        return self._result(promise, answer)

    def _arguments(self, promise: Promise, wire: dict[str, Any]) -> Any:
        try:
            problems = promise.input.problems(wire, _ROOT)
            if problems:
                raise InvalidArguments(promise.offer.name, problems)
            return promise.typed(wire, _ROOT)
        except InvalidArguments as error:
            if self.promises.contract.argument_errors == "result":
                raise ToolError(error.message) from None
            raise

    def _result(self, promise: Promise, answer: Any) -> Any:
        result = self.given("tools/call", answer)
        if result is not None:
            structured = structured_content(result)
            if getattr(result, "content", None) is not None and not result.is_error:
                _check(promise, structured)
            return result
        if promise.offer.output is not None:
            text = _json(promise, answer)
            structured = from_json(text)
            _check(promise, structured)
            return self.typed("tools/call", {"content": [text_block(text)], "structuredContent": structured})
        return self.typed("tools/call", {"content": _content(promise, answer)})


def _json(promise: Promise, answer: Any) -> str:
    try:
        return promise.offer.writer.dump_json(answer, warnings="error").decode()
    except ValueError as error:
        raise BrokenPromise(f"the tool {promise.offer.name!r} gave {type(answer).__name__}: {error}") from None


def _content(promise: Promise, answer: object) -> list[Any]:
    if isinstance(answer, str):
        return [text_block(answer)]
    if is_several(answer):
        return [jsonrpc.plain(block) for block in answer]
    raise BrokenPromise(f"the tool {promise.offer.name!r} gave {type(answer).__name__}, which is no content")


def _check(promise: Promise, structured: Any) -> None:
    """Raises `BrokenPromise` unless structured content is what the contract says."""
    if promise.output is None:
        return
    if structured is ABSENT:
        raise BrokenPromise(f"the tool {promise.offer.name!r} gave no structured content")
    for problem in promise.output.problems(structured, "structuredContent"):
        raise BrokenPromise(f"the tool {promise.offer.name!r}: {problem['path']}: {problem['problem']}")
