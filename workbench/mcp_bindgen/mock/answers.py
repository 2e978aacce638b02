"""Fixed answers of tools, from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema_rs

from mcp_bindgen.app.validation import Validator
from mcp_bindgen.contract import text
from mcp_bindgen.contract.model import Contract, Entry
from mcp_bindgen.emit.python import naming
from mcp_bindgen.runtime import bindings
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.errors import ProtocolError
from mcp_bindgen.runtime.protocol.methods import CALL_TOOL
from mcp_bindgen.spec.errors import BadInput, locating, printable, suggestion
from mcp_bindgen.spec.json import is_array, is_object, join

_MEMBERS = ("arguments", "result", "error")
_FIX = "write {arguments: {...}, result: ...} or {arguments: {...}, error: ...}"


@dataclass(frozen=True)
class Answer:
    """Fixed answer of a tool.

    Attributes:
        arguments: Arguments that it answers; `None` for all arguments.
        result: Structured content, a text, or a whole result with `content`.
        error: Reason of a failed call, or an error of the protocol with `code` and `message`.
    """

    arguments: Mapping[str, Any] | None = None
    result: Any = None
    error: str | Mapping[str, Any] | None = None

    def fits(self, arguments: Mapping[str, Any]) -> bool:
        """Return True if it answers a call with these arguments; to JSON, `true` differs from 1."""
        return self.arguments is None or jsonschema_rs.is_valid({"const": self.arguments}, arguments)


def read_answers(path: Path, contract: Contract) -> dict[str, list[Answer]]:
    """Return tool -> fixed answers, from a JSON or YAML file.

    Raises:
        BadInput: The file cannot be read, or an answer does not fit the contract; with the pointer to the problem.
    """
    document = text.read(path)
    with locating(path):
        text.check(document)
        return answers_of(document, contract)


def answers_of(document: Any, contract: Contract) -> dict[str, list[Answer]]:
    """Return tool -> fixed answers, from a document.

    Raises:
        BadInput: An answer does not fit the contract; with the pointer to the problem.
    """
    if not is_object(document):
        raise BadInput("answers are an object", pointer="", fix="begin with the name of a tool")
    tools = {tool.name: tool for tool in contract.tools}
    found: dict[str, list[Answer]] = {}
    for name, answers in document.items():
        pointer = join("", name)
        if name not in tools:
            raise BadInput(f"the contract has no tool {name!r}", pointer=pointer, fix=suggestion(name, tools))
        if not is_array(answers):
            raise BadInput("the answers of a tool are a list", pointer=pointer, fix=_FIX)
        found[name] = [_answer(tools[name], one, join(pointer, index), contract) for index, one in enumerate(answers)]
    return found


def bindings_of(revision: str | None) -> ModuleType:
    """Return the bindings of a revision, by default the newest.

    Raises:
        ValueError: They are not installed.
    """
    if revision is None:
        return max(bindings.installed(), key=lambda package: package.REVISION.rank)
    try:
        return import_module(f"mcp_bindgen.{naming.package(revision)}")
    except ImportError:
        raise ValueError(f"MCP {revision} has no bindings; run: mcp-bindgen generate {printable(revision)}") from None


def _answer(tool: Entry, raw: Any, pointer: str, contract: Contract) -> Answer:
    if not is_object(raw) or ("result" in raw) == ("error" in raw):
        raise BadInput("an answer has a result or an error", pointer=pointer, fix=_FIX)
    for name in raw.keys() - set(_MEMBERS):
        raise BadInput(f"unknown member {name!r}", pointer=pointer, fix=suggestion(name, _MEMBERS))
    answer = Answer(raw.get("arguments"), raw.get("result"), raw.get("error"))
    if answer.arguments is not None:
        _check(tool.raw["inputSchema"], answer.arguments, join(pointer, "arguments"))
    if "error" in raw:
        _check_error(answer.error, join(pointer, "error"))
        return answer
    content, place = answer.result, join(pointer, "result")
    if is_whole(tool, content):
        try:
            jsonrpc.typed_result(bindings_of(contract.revision).methods.METHODS[CALL_TOOL], content)
        except ProtocolError as error:
            raise BadInput(error.message, pointer=place, fix="correct it") from None
        if content.get("isError") is True:
            return answer
        content, place = content.get("structuredContent"), join(place, "structuredContent")
    if "outputSchema" in tool.raw:
        _check(tool.raw["outputSchema"], content, place)
    return answer


def is_whole(tool: Entry, result: Any) -> bool:
    """Return True if a fixed result of a tool is a whole `CallToolResult`, and not structured content."""
    if not (is_object(result) and is_array(result.get("content"))):
        return False
    return "outputSchema" not in tool.raw or "structuredContent" in result or result.get("isError") is True


def _check_error(error: Any, pointer: str) -> None:
    is_protocol_error = is_object(error) and type(error.get("code")) is int and isinstance(error.get("message"), str)
    if not (isinstance(error, str) or is_protocol_error):
        fix = "write a text for a failed call, or {code: -32000, message: ...} for an error of the protocol"
        raise BadInput("this is not an error", pointer=pointer, fix=fix)


def _check(schema: Any, value: Any, pointer: str) -> None:
    problems: Sequence[Mapping[str, str]] = Validator(schema, "the schema").problems(value, "")
    for first in problems[:1]:
        place = join(pointer, *first["path"].split(".")[1:])
        raise BadInput(f"does not fit the contract: {first['problem']}", pointer=place)
