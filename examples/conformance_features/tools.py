"""The tools."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

import anyio

from mcp_bindgen.runtime import InvalidParams

from .call import AUDIO, BOOLEAN, IMAGE, STRING, Call, Object, embedded, entered, hidden, text
from .resources import RESOURCES, WATCHED

ToolWork: TypeAlias = Callable[[Call], Awaitable[list[Object]]]


@dataclass(frozen=True)
class Tool:
    """A tool: its purpose, the JSON Schema of its arguments, and its function."""

    description: str
    schema: Object
    work: ToolWork


class ToolFailed(Exception):
    """A tool could not do its work; the model gets to read why."""


TOOLS: dict[str, Tool] = {}
"""Name -> tool."""


def tool(description: str, schema: Object | None = None, **properties: Object) -> Callable[[ToolWork], ToolWork]:
    """Make a function a tool of the same name; its arguments are `properties`, or the members of `schema`."""

    def add(work: ToolWork) -> ToolWork:
        known = schema or {"type": "object", "properties": properties, "required": list(properties)}
        TOOLS[getattr(work, "__name__", "")] = Tool(description, known, work)
        return work

    return add


def list_tools() -> list[Object]:
    """Return the tools that are there now."""
    listed = {name: each for name, each in TOOLS.items() if name not in hidden}
    return [
        {"name": name, "description": each.description, "inputSchema": each.schema} for name, each in listed.items()
    ]


async def call_tool(name: str, call: Call) -> Object:
    """Return the result of a tool."""
    if name not in TOOLS:
        raise InvalidParams("tools/call", [{"path": "params.name", "problem": f"no tool {name!r}"}])
    known = TOOLS[name]
    try:
        for argument in known.schema.get("required", []):
            if argument not in call.arguments:
                raise ToolFailed(f"{argument!r} is missing")
        return {"content": await known.work(call)}
    except ToolFailed as error:
        return {"content": [text(str(error))], "isError": True}


@tool("Says something.")
async def test_simple_text(call: Call) -> list[Object]:
    return [text("This is a simple text response for testing.")]


@tool("Shows a picture.")
async def test_image_content(call: Call) -> list[Object]:
    return [IMAGE]


@tool("Plays a sound.")
async def test_audio_content(call: Call) -> list[Object]:
    return [AUDIO]


@tool("Hands over a resource.")
async def test_embedded_resource(call: Call) -> list[Object]:
    return [embedded("test://embedded-resource", "This is an embedded resource content.")]


@tool("Answers with blocks of several types.")
async def test_multiple_content_types(call: Call) -> list[Object]:
    data = embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return [text("Multiple content types test:"), IMAGE, data]


@tool("Always fails.")
async def test_error_handling(call: Call) -> list[Object]:
    raise ToolFailed("This tool intentionally returns an error for testing")


@tool("Logs what it does.")
async def test_tool_with_logging(call: Call) -> list[Object]:
    for step in ("started", "processing data", "completed"):
        await call.context.log("info", f"Tool execution {step}")
        await anyio.sleep(0.05)
    return [text("Tool with logging executed successfully")]


@tool("Logs something, where the client wants to hear it.")
async def test_logging_tool(call: Call) -> list[Object]:
    await call.context.log("info", "This is a log message")
    return [text("Logged")]


@tool("Tells how far it is.")
async def test_tool_with_progress(call: Call) -> list[Object]:
    for percent in (0, 50, 100):
        await call.context.progress(percent, 100, f"Completed step {percent} of 100")
        await anyio.sleep(0.05)
    return [text("Done")]


@tool("Hangs up in the middle; the client comes back for the result.")
async def test_reconnection(call: Call) -> list[Object]:
    call.context.close_stream(retry=0.5)
    await anyio.sleep(0.1)
    return [text("Reconnection test completed successfully.")]


@tool("Takes an argument that is repeated in an HTTP header.", region=STRING | {"x-mcp-header": "Region"})
async def test_x_mcp_header(call: Call) -> list[Object]:
    return [text(f"Region: {call.arguments.get('region')}")]


@tool(
    "Has an input schema with everything that JSON Schema 2020-12 offers.",
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {"$anchor": "addressDef", "type": "object", "properties": {"street": STRING, "city": STRING}}
        },
        "properties": {
            "name": STRING,
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": STRING,
            "email": STRING,
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)
async def json_schema_2020_12_tool(call: Call) -> list[Object]:
    return [text(json.dumps(call.arguments))]


# --- tools that ask ---


@tool("Has the client's model answer.", prompt=STRING)
async def test_sampling(call: Call) -> list[Object]:
    return [text(f"LLM response: {await call.model('response', call.arguments['prompt'])}")]


@tool("Needs a client that has a model.")
async def test_missing_capability(call: Call) -> list[Object]:
    return [text(await call.model("response", "Are you there?"))]


@tool("Has the user answer.", message=STRING)
async def test_elicitation(call: Call) -> list[Object]:
    answer = await call.form("response", call.arguments["message"], ["response"], response=STRING)
    return [text(f"User response: {json.dumps(answer)}")]


@tool("Shows the user a form that is filled in.")
async def test_elicitation_sep1034_defaults(call: Call) -> list[Object]:
    answer = await call.form(
        "profile",
        "Please review the form",
        [],
        name=STRING | {"default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status=STRING | {"enum": ["active", "inactive", "pending"], "default": "active"},
        verified=BOOLEAN | {"default": True},
    )
    return [text(f"Elicitation completed: {json.dumps(answer)}")]


@tool("Has the user choose, in all the ways that there are.")
async def test_elicitation_sep1330_enums(call: Call) -> list[Object]:
    names = ["option1", "option2", "option3"]
    titled = [{"const": name, "title": name.title()} for name in names]
    answer = await call.form(
        "choices",
        "Please choose",
        [],
        untitledSingle=STRING | {"enum": names},
        titledSingle=STRING | {"oneOf": titled},
        legacyEnum=STRING | {"enum": names, "enumNames": [name.title() for name in names]},
        untitledMulti={"type": "array", "items": STRING | {"enum": names}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )
    return [text(f"Elicitation completed: {json.dumps(answer)}")]


@tool("Asks for a name.")
async def test_input_required_result_elicitation(call: Call) -> list[Object]:
    answer = await call.form("user_name", "What is your name?", ["name"], name=STRING)
    return [text(f"Hello, {entered(answer, 'name')}!")]


@tool("Says how far it is, then asks for a name.")
async def test_streaming_elicitation(call: Call) -> list[Object]:
    await call.context.progress(50, 100)
    return await test_input_required_result_elicitation(call)


@tool("Asks the client's model for a capital.")
async def test_input_required_result_sampling(call: Call) -> list[Object]:
    return [text(await call.model("capital_question", "What is the capital of France?"))]


@tool("Asks for the client's roots.")
async def test_input_required_result_list_roots(call: Call) -> list[Object]:
    answer = await call.ask("client_roots", "roots/list", {})
    return [text(f"The roots are {', '.join(root['uri'] for root in answer['roots'])}")]


@tool("Asks for whatever the client is able to give, all at once.")
async def test_input_required_result_capabilities(call: Call) -> list[Object]:
    able = call.context.peer_capabilities
    async with anyio.create_task_group() as tasks:
        if "elicitation" in able:
            tasks.start_soon(lambda: call.form("user_name", "What is your name?", ["name"], name=STRING))
        if "sampling" in able:
            tasks.start_soon(lambda: call.model("greeting", "Generate a greeting"))
    return [text("All is answered")]


# --- tools that change something ---


async def switch(call: Call, name: str, kind: str) -> list[Object]:
    """List the hidden tools, or hide them again, and notify all clients."""
    hidden.symmetric_difference_update({name})
    await call.announce(f"notifications/{kind}/list_changed", {})
    return [text(f"The list of {kind} has changed")]


@tool("Comes and goes.")
async def test_dynamic_tool(call: Call) -> list[Object]:
    return [text("Here I am")]


@tool("Makes a tool appear or disappear.")
async def test_trigger_tool_change(call: Call) -> list[Object]:
    return await switch(call, "test_dynamic_tool", "tools")


@tool("Makes a prompt appear or disappear.")
async def test_trigger_prompt_change(call: Call) -> list[Object]:
    return await switch(call, "test_dynamic_prompt", "prompts")


@tool("Writes to the resource that can be watched.", text=STRING)
async def test_write_watched_resource(call: Call) -> list[Object]:
    RESOURCES[WATCHED]["text"] = call.arguments["text"]
    await call.announce("notifications/resources/updated", {"uri": WATCHED})
    return [text("Written")]
