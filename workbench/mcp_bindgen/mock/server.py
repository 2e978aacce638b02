"""App that answers each entry of a contract with sample values."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from html import escape
from typing import Any, Literal, NotRequired, Required

from typing_extensions import TypedDict

from mcp_bindgen.app import App, Completion, Context, InvalidResult, ToolError
from mcp_bindgen.app.catalog import KINDS, SCOPES, Entry, Kind
from mcp_bindgen.app.values import TypeForm
from mcp_bindgen.contract.model import Contract
from mcp_bindgen.contract.model import Entry as ContractEntry
from mcp_bindgen.contract.samples import full_samples
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.errors import ProtocolError
from mcp_bindgen.runtime.protocol.methods import CALL_TOOL
from mcp_bindgen.spec.errors import shortened
from mcp_bindgen.spec.json import is_object

from .answers import Answer, bindings_of, is_whole

_COMPLETIONS = 3
_MAX_SHOWN = 500  # characters of arguments in a text
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
_BINARY = {"image", "audio", "video", "font"}
_TEXTUAL = ("json", "xml", "yaml", "javascript", "typescript", "sql", "csv", "toml", "markdown", "html")


class Mock(App):
    """App with the tools, prompts, resources and completions of a contract, which answers with sample values.

    Arguments are validated as by any `App`. The same call has the same result in each process. The revision of the
    contract is served natively, other revisions by conversion. Scopes of entries are left out, because a mock verifies
    no tokens.

    Args:
        contract: The contract.
        seed: Selects among sample values, with the name of the entry and its arguments.
        answers: Tool -> fixed answers; the first that fits the arguments is used, before any sample value.

    Attributes:
        calls: The calls so far: name of the tool, and arguments.

    Raises:
        ValueError: The bindings of the contract's revision are not installed.
    """

    def __init__(
        self, contract: Contract, *, seed: int = 0, answers: Mapping[str, Sequence[Answer]] | None = None
    ) -> None:
        info: Mapping[str, Any] = contract.info or {}
        self._bindings = bindings_of(contract.revision)
        super().__init__(str(info.get("name", "mock")), instructions=contract.instructions, revisions=[self._bindings])
        self.document["serverInfo"].update(info)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._seed, self._answers = seed, answers or {}
        self.document.update({place.member: [] for place in KINDS.values() if place.member in contract.document})
        for tool in contract.tools:
            values = cache(partial(_sample_values, tool))
            self._offer("tool", tool.raw, partial(self._call, tool, values), dict[str, Any])
        for prompt in contract.prompts:
            described = [one for one in prompt.raw.get("arguments", ()) if is_object(one)]
            self._offer("prompt", prompt.raw, partial(self._get, prompt.summary), _arguments(described))
            self._complete_by_samples(prompt.name, described)
        for resource in contract.resources:
            self._offer("resource", resource.raw, partial(self._read, resource.raw), None)
        for template in contract.templates:
            self._offer("template", template.raw, partial(self._read, template.raw), None)
            self._complete_by_samples(template.key, _variables(template, contract))

    def _offer(self, kind: Kind, raw: Mapping[str, Any], answer: Any, input: TypeForm) -> None:
        entry = {name: value for name, value in raw.items() if name != SCOPES}

        async def handler(*arguments: Any) -> Any:
            return answer(*arguments)

        self.add_entry(kind, entry, handler, input=input)

    def _pick(self, values: Sequence[Any], *key: Any) -> Any:
        """Return the value that the seed and a key select."""
        text = json.dumps([self._seed, *key], sort_keys=True)
        return values[int.from_bytes(sha256(text.encode()).digest()[:8]) % len(values)]

    def _call(
        self, tool: ContractEntry, values: Callable[[], Sequence[Any]], arguments: dict[str, Any], ctx: Context
    ) -> Any:
        self.calls.append((tool.name, arguments))
        fixed = next((one for one in self._answers.get(tool.name, ()) if one.fits(arguments)), None)
        if fixed is None:
            if "outputSchema" in tool.raw:
                return self._result(tool, self._pick(values(), tool.name, arguments))
            return self._result(tool, f"Sample result of {tool.name}({_shown(arguments)})")
        if is_object(fixed.error):
            raise ProtocolError(fixed.error["code"], fixed.error["message"], fixed.error.get("data"))
        if fixed.error is not None:
            raise ToolError(str(fixed.error))
        return self._result(tool, fixed.result, is_wire=is_whole(tool, fixed.result))

    def _result(self, tool: ContractEntry, value: Any, *, is_wire: bool = False) -> Any:
        """Return a value, which may be a whole result, as the result of a tool in the revision of the contract."""
        wire: dict[str, Any] = value
        if not is_wire:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            wire = {"content": [{"type": "text", "text": text}]}
            if "outputSchema" in tool.raw:
                wire["structuredContent"] = value
        return jsonrpc.typed_result(self._bindings.methods.METHODS[CALL_TOOL], wire)

    def _get(self, words: str, *given: Any) -> str:
        arguments: Mapping[str, Any] = given[0] if len(given) > 1 else {}
        return "\n".join([words, *(f"{name}: {value}" for name, value in arguments.items())])

    def _read(self, entry: Mapping[str, Any], ctx: Context) -> str | bytes:
        mime_type = str(entry.get("mimeType", "text/plain")).partition(";")[0].strip().lower()
        uri: str = ctx.call.name
        family, _, kind = mime_type.partition("/")
        if mime_type == "image/png":
            return b64decode(_PIXEL)
        if family in _BINARY and not kind.endswith("xml"):
            return sha256(f"{self._seed} {uri}".encode()).digest()
        if mime_type == "application/json" or kind.endswith("+json"):
            return json.dumps({"uri": uri, "name": entry["name"]})
        if kind == "html":
            return f"<!doctype html><title>{escape(entry['name'])}</title><p>Sample content of {escape(uri)}"
        if kind == "xml" or kind.endswith("+xml"):
            root = "svg xmlns='http://www.w3.org/2000/svg'" if kind.startswith("svg") else "sample"
            return f"<{root}><title>{escape(uri)}</title></{root.partition(' ')[0]}>"
        is_text = family == "text" or any(kind.endswith(one) for one in _TEXTUAL)
        text = f"Sample content of {uri}"
        return text if is_text else text.encode()

    def _complete_by_samples(self, of: str, described: Sequence[Mapping[str, Any]]) -> None:
        """Complete the arguments of an entry: with the values of an `enum`, else with sample texts."""
        for one in described:
            name: Any = one.get("name")
            values: Any = one.get("enum") or [f"{name}-{number}" for number in range(1, _COMPLETIONS + 1)]
            self.completion(of, name)(_completing(values))


def _sample_values(tool: ContractEntry) -> Sequence[Any]:
    """Return sample values for the structured content of a tool.

    Raises:
        ToolError: No sample value fits the schema.
    """
    try:
        found = full_samples(tool.raw["outputSchema"])
    except (InvalidResult, IndexError):
        found = ()
    if not found:
        raise ToolError(f"no sample value fits the outputSchema of {tool.name}; give a fixed answer")
    return found


def _completing(values: Sequence[str]) -> Callable[[Completion], list[str]]:
    def completed(asked: Completion) -> list[str]:
        typed = asked.value.casefold()
        return [value for value in values if value.casefold().startswith(typed)]

    return completed


def _arguments(described: Sequence[Mapping[str, Any]]) -> TypeForm:
    """Return the type of the arguments of a prompt; `None` for a prompt without arguments."""
    if not described:
        return None
    fields: dict[str, Any] = {}
    for one in described:
        kind: Any = Literal[tuple(one["enum"])] if one.get("enum") else str
        fields[one["name"]] = Required[kind] if one.get("required") is True else NotRequired[kind]
    return TypedDict("Arguments", fields)  # type: ignore[operator]


def _variables(template: ContractEntry, contract: Contract) -> Sequence[Entry]:
    """Return the variables of a template, with their descriptions in the entry."""
    kind: Any = contract.types.definitions[template.arguments].type
    described = {one["name"]: one for one in template.raw.get("variables", ()) if is_object(one)}
    return [described.get(field.wire, {"name": field.wire}) for field in kind.fields]


def _shown(arguments: Mapping[str, Any]) -> str:
    text = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return shortened(text, _MAX_SHOWN)
