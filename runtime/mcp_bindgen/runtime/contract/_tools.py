"""The tools of a contract: listed verbatim, called with arguments and answered with results that fit their schemas."""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json

from ._feature import Feature, items, lists, text_block
from ._results import adapter, structured_content
from .call_arguments import ABSENT
from .errors import InvalidArguments, ToolError
from .handlers import BoundHandler

CALL_TOOL = "tools/call"

_ROOT = "params.arguments"


class Tools(Feature):
    """Answers `tools/list` and `tools/call`."""

    members = ("tools",)
    list_tools = lists("tools/list", "tools")

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        """Call a tool.

        Raises:
            ProtocolError: There is no such tool, or the arguments do not fit it.
            InvalidResult: The result is not what the contract says.
        """
        handler = self.find("tool", params.name)
        try:
            arguments = self._arguments(handler, params.arguments or {})
            result = await self.answer(CALL_TOOL, handler, arguments, ctx, _build)
        except ToolError as error:
            return self.result(CALL_TOOL, {"content": [text_block(error.text)], "isError": True})
        if getattr(result, "content", None) is not None and not result.is_error:
            _validate(handler, structured_content(result))
        return result

    def _arguments(self, handler: BoundHandler, wire: dict[str, Any]) -> Any:
        try:
            problems = handler.input.problems(wire, _ROOT)
            if problems:
                raise InvalidArguments(handler.spec.name, problems)
            return handler.read(wire, _ROOT)
        except InvalidArguments as error:
            if self.contract.argument_errors == "result":
                raise ToolError(error.message) from None
            raise


def _build(handler: BoundHandler, returned: Any) -> dict[str, Any]:
    """Return the wire form of a result: structured content and its text, or content alone."""
    if handler.spec.output is None:
        return {"content": items(handler, returned, text_block)}
    try:
        text = adapter(handler.spec.output).dump_json(returned, warnings="error").decode()
    except ValueError as error:
        raise handler.invalid(f"returned {type(returned).__name__}: {error}") from None
    return {"content": [text_block(text)], "structuredContent": from_json(text)}


def _validate(handler: BoundHandler, structured: Any) -> None:
    """Raise `InvalidResult` unless structured content fits the output schema, if there is one."""
    if handler.output is None:
        return
    if structured is ABSENT:
        raise handler.invalid("returned no structured content")
    for problem in handler.output.problems(structured, "structuredContent"):
        raise handler.invalid(f"returned {problem['path']}: {problem['problem']}")
