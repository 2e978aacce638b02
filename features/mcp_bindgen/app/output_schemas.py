"""Hold what tools return against the output schemas that the server has listed (MCP, "Tools": Output Schema)."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Any

from mcp_bindgen.runtime.protocol.methods import Method

from .call_arguments import ABSENT
from .errors import InvalidResult, UnexpectedResult, require
from .types import structured_content
from .validation import Validator

log = logging.getLogger("mcp_bindgen")


class OutputSchemas:
    """Validates the structured content of results, for tools that the client has listed: `client.checks = ...`.

    Args:
        limit: How many schemas are kept; those that were listed the longest ago go first.

    Raises:
        ImportError: `mcp-bindgen[app]` is not installed.
    """

    def __init__(self, limit: int = 1000) -> None:
        require("jsonschema_rs", "validating the results of tools")
        self._limit = limit
        self._validators: OrderedDict[str, Validator] = OrderedDict()

    def check(self, method: Method, params: Any, answer: Any) -> None:
        """Learn the schemas from a list of tools, or check the result of a tool.

        A schema that cannot be used is logged, and its tool is not checked any more.

        Raises:
            UnexpectedResult: The structured content does not fit the schema, or there is none.
        """
        if method.name == "tools/list":
            for tool in answer.tools:
                self._learn(tool.name, tool.model_dump(include={"output_schema"}).get("outputSchema"))
        elif method.name == "tools/call" and params.name in self._validators and _succeeded(answer):
            self._check(params.name, structured_content(answer))

    def _learn(self, name: str, schema: Any) -> None:
        self._validators.pop(name, None)
        if schema is not None:
            self._validators[name] = Validator(schema, f"the outputSchema of {name!r}")
            if len(self._validators) > self._limit:
                self._validators.popitem(last=False)

    def _check(self, name: str, content: Any) -> None:
        if content is ABSENT:
            raise UnexpectedResult(f"the tool {name!r} gave no structured content, which its outputSchema demands")
        try:
            problems = self._validators[name].problems(content, "structuredContent")
        except InvalidResult as error:
            log.warning("%s", error)
            del self._validators[name]
            return
        if problems:
            first = problems[0]
            raise UnexpectedResult(
                f"the result of the tool {name!r} does not fit its outputSchema: {first['path']}: {first['problem']}"
            )


def _succeeded(answer: Any) -> bool:
    """Tell whether a tool has answered, rather than asked for something, and not with an error."""
    return hasattr(answer, "content") and not getattr(answer, "is_error", None)
