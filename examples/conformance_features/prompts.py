"""The prompts, and possible values of their arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from mcp_bindgen.runtime import InvalidParams

from .call import IMAGE, STRING, Call, Object, embedded, entered, hidden, text

PromptWork: TypeAlias = Callable[[Call], Awaitable[list[Object]]]

PROMPTS: dict[str, tuple[str, list[str], PromptWork]] = {}
"""Name -> description, arguments, and the function that gives the blocks to send."""

SUGGESTIONS = ["paris", "park", "party", "test", "testValue1"]


def prompt(description: str, *arguments: str) -> Callable[[PromptWork], PromptWork]:
    """Make a function a prompt of the same name."""

    def add(work: PromptWork) -> PromptWork:
        PROMPTS[getattr(work, "__name__", "")] = (description, list(arguments), work)
        return work

    return add


def list_prompts() -> list[Object]:
    """Return the prompts that are there now."""
    return [
        {
            "name": name,
            "description": description,
            "arguments": [{"name": argument, "required": True} for argument in arguments],
        }
        for name, (description, arguments, _) in PROMPTS.items()
        if name not in hidden
    ]


async def get_prompt(name: str, call: Call) -> Object:
    """Return the messages of a prompt."""
    if name not in PROMPTS:
        raise InvalidParams("prompts/get", [{"path": "params.name", "problem": f"no prompt {name!r}"}])
    description, arguments, work = PROMPTS[name]
    for argument in arguments:
        if argument not in call.arguments:
            problem = {"path": f"params.arguments.{argument}", "problem": "missing"}
            raise InvalidParams("prompts/get", [problem])
    return {"description": description, "messages": [{"role": "user", "content": one} for one in await work(call)]}


def complete(value: str) -> Object:
    """Return the values for an argument that begins with `value`."""
    found = [word for word in SUGGESTIONS if word.startswith(value)]
    return {"values": found, "total": len(found), "hasMore": False}


@prompt("Says something.")
async def test_simple_prompt(call: Call) -> list[Object]:
    return [text("This is a simple prompt for testing.")]


@prompt("Says what it was given.", "arg1", "arg2")
async def test_prompt_with_arguments(call: Call) -> list[Object]:
    return [text("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'".format(**call.arguments))]


@prompt("Hands over a resource.", "resourceUri")
async def test_prompt_with_embedded_resource(call: Call) -> list[Object]:
    resource = embedded(call.arguments["resourceUri"], "Embedded resource content for testing.")
    return [resource, text("Please process the embedded resource above.")]


@prompt("Shows a picture.")
async def test_prompt_with_image(call: Call) -> list[Object]:
    return [IMAGE, text("Please analyze the image above.")]


@prompt("Asks the user what it should be about.")
async def test_input_required_result_prompt(call: Call) -> list[Object]:
    answer = await call.form("user_context", "What context should the prompt use?", ["context"], context=STRING)
    return [text(f"The context is {entered(answer, 'context')}.")]


@prompt("Comes and goes.")
async def test_dynamic_prompt(call: Call) -> list[Object]:
    return [text("Here I am.")]
