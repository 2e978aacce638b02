"""Functions that rules of `bridges.toml` name; each takes a JSON value and a `RuleContext`, and returns the new value.

Values of an unexpected kind are returned unchanged. A second conversion of a value changes nothing.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from pydantic_core import to_json

from mcp_bindgen.json_schema.keywords import edited
from mcp_bindgen.runtime.model.json_types import is_array, is_object

from .chain import RuleContext

MAX_COMPLETION_VALUES = 100
"""The number of completion values that later revisions allow."""

WRAPPER_MEMBER = "result"
"""The member of `structuredContent` that holds a value that is no object."""

_LINK_MEMBERS = frozenset({"description", "icons", "mimeType", "name", "size", "title", "uri"})
_WRAPPED_DEFINITION = "output"


# --- blocks of content ----------------------------------------------------------------------------------------


def audio_as_resource(block: dict[str, Any], context: RuleContext) -> Any:
    """Return an audio block as an embedded resource with its bytes and media type."""
    context.record_loss()
    resource = {"uri": "embedded:audio", "mimeType": block.pop("mimeType", None), "blob": block.pop("data", None)}
    return {**block, "type": "resource", "resource": {name: one for name, one in resource.items() if one is not None}}


def link_as_text(block: dict[str, Any], context: RuleContext) -> Any:
    """Return a link to a resource as text: its title or name, its URI, its description."""
    context.record_loss()
    lines = (block.get("title") or block.get("name"), block.get("uri"), block.get("description"))
    kept = {name: value for name, value in block.items() if name not in _LINK_MEMBERS}
    return {**kept, "type": "text", "text": "\n".join(line for line in lines if isinstance(line, str) and line)}


def structured_as_text(result: object, context: RuleContext) -> Any:
    """Add structured content as JSON text to a result that has no text."""
    if not is_object(result) or "structuredContent" not in result or not is_array(result.get("content")):
        return result
    if not any(is_object(block) and block.get("type") == "text" for block in result["content"]):
        result["content"].append({"type": "text", "text": to_json(result["structuredContent"]).decode()})
    return result


def one_block_each(messages: object, context: RuleContext) -> Any:
    """Split messages with several blocks into messages with one block; a message without blocks gets an empty text."""
    if not is_array(messages):
        return messages
    return [one for message in messages for one in _split(message)]


def _split(message: object) -> list[Any]:
    if not is_object(message) or not is_array(content := message.get("content")):
        return [message]
    return [{**message, "content": block} for block in content or [{"type": "text", "text": ""}]]


def one_block(content: list[Any], context: RuleContext) -> Any:
    """Join blocks of text to one block, and refuse other combinations of several blocks."""
    if len(content) == 1:
        return content[0]
    if not all(is_object(block) and block.get("type") == "text" for block in content):
        context.refuse()
    context.record_loss()
    return {"type": "text", "text": "\n".join(str(block.get("text", "")) for block in content)}


# --- lists ----------------------------------------------------------------------------------------------------


def first_values(completion: object, context: RuleContext) -> Any:
    """Keep the first 100 values of a completion, and set `hasMore`."""
    if is_object(completion) and is_array(values := completion.get("values")) and len(values) > MAX_COMPLETION_VALUES:
        context.record_loss()
        completion.update(values=values[:MAX_COMPLETION_VALUES], hasMore=True)
        completion.setdefault("total", len(values))
    return completion


def without_required_tasks(tools: object, context: RuleContext) -> Any:
    """Leave out the tools that run as tasks only."""
    if not is_array(tools):
        return tools
    kept = [tool for tool in tools if not _requires_task(tool)]
    if len(kept) < len(tools):
        context.record_loss()
    return kept


def _requires_task(tool: object) -> bool:
    execution = tool.get("execution") if is_object(tool) else None
    return is_object(execution) and execution.get("taskSupport") == "required"


# --- elicitation ----------------------------------------------------------------------------------------------


def titles_as_names(schema: dict[str, Any], context: RuleContext) -> Any:
    """Return a choice between values with titles as `enum` and `enumNames`."""
    choices = schema["oneOf"]
    if not is_array(choices) or not all(is_object(one) and "const" in one and "title" in one for one in choices):
        return schema
    if any(one.keys() - {"const", "title"} for one in choices):
        context.record_loss()
    del schema["oneOf"]
    return {**schema, "enum": [one["const"] for one in choices], "enumNames": [one["title"] for one in choices]}


def with_elicitation_id(params: object, context: RuleContext) -> Any:
    """Give a visit to a URL an id, unless it has one."""
    if is_object(params) and not isinstance(params.get("elicitationId"), str):
        params["elicitationId"] = str(uuid4())
    return params


# --- structured content ---------------------------------------------------------------------------------------


def structured_as_object(content: object, context: RuleContext) -> Any:
    """Return structured content as an object."""
    return content if is_object(content) else {WRAPPER_MEMBER: content}


def schema_as_object(schema: object, context: RuleContext) -> Any:
    """Return the schema of the objects that `structured_as_object` makes of the values of `schema`.

    A schema of objects and other values becomes a schema of either: objects stay as they are.
    """
    if not is_object(schema) or schema.get("type") == "object":
        return schema
    dialect = {"$schema": schema.pop("$schema")} if "$schema" in schema else {}
    kinds = schema.get("type")
    if isinstance(kinds, str) or (is_array(kinds) and "object" not in kinds):
        inner = _moved(schema, f"#/properties/{WRAPPER_MEMBER}")
        return {**dialect, "type": "object", "properties": {WRAPPER_MEMBER: inner}, "required": [WRAPPER_MEMBER]}
    either = {"$ref": f"#/$defs/{_WRAPPED_DEFINITION}"}
    wrapper = {"properties": {WRAPPER_MEMBER: either}, "required": [WRAPPER_MEMBER]}
    inner = _moved(schema, either["$ref"])
    return {**dialect, "type": "object", "anyOf": [either, wrapper], "$defs": {_WRAPPED_DEFINITION: inner}}


def _moved(schema: object, place: str) -> Any:
    """Return a schema whose references into itself lead to its new place."""

    def edit(original: dict[str, Any], found: dict[str, Any]) -> None:
        reference = original.get("$ref")
        if "$id" in original:  # references are relative to an id
            found.update(original)
        elif isinstance(reference, str) and (reference == "#" or reference.startswith("#/")):
            found["$ref"] = place + reference[1:]

    return edited(schema, edit)
