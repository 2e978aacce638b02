"""A contract of edge cases: names that Python lacks or reserves, schemas of all kinds, and code in texts.

The schemas are in `hostile_contract.json`: tool name -> input or output schema.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

Document = dict[str, Any]
Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
SCHEMAS = Path(__file__).with_suffix(".json")


def payloads(marker: Path) -> list[str]:
    """Return texts that create the file `marker` if source code, a template or a shell executes them."""
    code = f"__import__('pathlib').Path({str(marker)!r}).touch()"
    return [
        f'"""\n{code}\n"""',
        f'""" + str({code}) + """',
        f"'''\n{code}\n'''",
        f'\\"""\n        {code}\n        """',
        f"\n    {code}\n",
        f'"), {code}, ("',
        f"'), {code}, ('",
        f"+str({code})+",
        f"{{{{ {code} }}}}{{% for x in [1] %}}{{% endfor %}}{{# #}}",
        f"{{{code}}} %s %(x)s {{0}} {{x!r}}",
        f"$(touch {marker}) `touch {marker}` ; touch {marker}",
        'ends with a quote"',
        "ends with a backslash\\",
        '"',
        "\\",
        "\\N{BULLET} \\x00 \\u0041 \\777",
        "# type: ignore\n# pyright: basic\n# ruff: noqa\n# fmt: off",
        "\r\n\r\t\v\f\x1c\x85\u2028\u2029 all kinds of line ends",
        "\u202eback to front\u2066 \ufeff \u200b \x07 \x1b[31m \x7f",
        "\x00",
        "<script>alert(1)</script> | --- | [a](b) ``` ",
        "",
        "   ",
        f"]]\n[tool.x]\ny = '''{code}'''",
    ]


def _object(required: str = "", /, **properties: Any) -> Schema:
    return {"type": "object", "properties": properties, **({"required": required.split()} if required else {})}


NAMES = [
    *["get.forecast", "get-forecast", "get_forecast", "Get_Forecast", "getForecast"],  # these nearly collide
    *["class", "import", "None", "print", "match", "str", "list", "dict", "super", "object", "abstractmethod"],
    *["self", "ctx", "arguments", "app", "contract", "models", "client", "connect", "servers", "lifespan", "complete"],
    *[
        "catalog",
        "revisions",
        "info",
        "instructions",
        "argument_errors",
        "hide_errors",
        "validation_steps",
        "Context",
        "types",
        "Client",
        "Json",
    ],
    *["__init__", "__class__", "__getattr__", "_", "__", "call_tool", "list_tools", "prompt_class", "read_note"],
    *["wetter-für-tübingen", "天気", "погода", "ﬁ", "fi", "e\u0301", "é", "ª", "🌦", "🌦🌦", "1st", "2", "-", ".", " "],
    *["a b", "a/b", "a\\b", "two\nlines", "quo\"te'", "{{ name }}", "%s", "\u202eabc", "x" * 200, "x" * 199 + "y"],
]
"""Names of tools that share one schema."""

PROPERTIES = [
    *["self", "cls", "class", "_meta", "a-b", "a_b", "a b", "a.b", "", "_", "__", "__class__", "__dict__"],
    *["model_config", "model_dump", "model_fields", "copy", "json", "dict", "schema", "validate", "construct"],
    *["None", "True", "def", "async", "str", "int", "list", "float", "bool", "type", "Any", "Literal", "Json", "Field"],
    *["app", "contract", "arguments", "client", "nullable", "ctx", "types", "models", "super", "annotations"],
    *["$ref", "$schema", "$defs", "properties", "required", "default", "enum", "@id", "#", "/", "~", "%25"],
    *["ﬁ", "fi", "é", "e\u0301", "天", "🌦", "1", "01", "'", '"', "\\", "\n", "{x}", "x" * 200],
    *["fromJSON", "from_json", "FromJson"],
]
"""Names of properties in a single schema."""


def contract(marker: Path) -> Document:
    """Return the contract.

    Args:
        marker: A file that does not exist, and which injected code would create.
    """
    words = payloads(marker)
    take = cycle(words)
    safe = [word for word in words if word.isprintable() and not word.startswith("\\")]  # in a URI
    schemas: dict[str, dict[str, Schema]] = json.loads(SCHEMAS.read_text("utf-8"))
    every = {name: dict(TEXT) for name in PROPERTIES}
    inputs = {"properties": {**_object("self class _meta a-b"), "properties": every}, **schemas["inputs"]}
    tools: list[Document] = [
        *({"name": name, "description": next(take), "inputSchema": _object("text", text=TEXT)} for name in NAMES),
        *({"name": name, "title": next(take), "inputSchema": _said(schema, take)} for name, schema in inputs.items()),
        *({"name": f"words-{number}", **_tool_of(text)} for number, text in enumerate(words)),
    ]
    for name, schema in schemas["outputs"].items():
        tools.append({"name": name, "inputSchema": {"type": "object"}, "outputSchema": _said(schema, take)})
    said = [{"name": name, "description": next(take)} for name in PROPERTIES]
    prompts: list[Document] = [{"name": name, "description": next(take), "arguments": said} for name in NAMES[:20]]
    prompts.append({"name": "choose", "arguments": [{"name": "word", "required": True, "enum": [*words, "abc"]}]})
    resources: list[Document] = [
        {"uri": f"memo://notes/{number}", "name": name, "description": next(take), "mimeType": "text/plain"}
        for number, name in enumerate(NAMES)
    ]
    resources.append({"uri": "memo://quo'te/%22%5C", "name": "quoted", "mimeType": next(take)})
    templates: list[Document] = [
        {"uriTemplate": "note://{id}", "name": "note", "description": next(take)},
        {"uriTemplate": "note://{id}/{part}", "name": "note"},
        {"uriTemplate": "file:///{+path}", "name": "class"},
        {"uriTemplate": "find://x{?q,lang}", "name": "self", "variables": [{"name": "lang", "enum": safe}]},
        {"uriTemplate": "odd://{self}/{class}/{a.b}/{a_b}", "name": "a.b"},
    ]
    return {
        "serverInfo": {"name": words[0], "title": words[1], "version": words[5]},
        "instructions": words[3],
        "tools": tools,
        "prompts": prompts,
        "resources": resources,
        "resourceTemplates": templates,
    }


def _said(schema: Schema, words: Iterator[str]) -> Schema:
    """Return a copy of a schema with descriptions on its properties."""
    new = copy.deepcopy(schema)
    for child in new.get("properties", {}).values():
        if isinstance(child, dict) and "$ref" not in child:
            child.setdefault("description", next(words))
    return new


def _tool_of(text: str) -> Document:
    """Return a tool that has the same text in every possible place."""
    schema = _object(
        choice={"enum": [text, "other"], "title": text},
        fixed={"const": text},
        inner={"type": "object", "description": text, "properties": {text: TEXT}},
        tree={"anyOf": [{"const": text}, {"type": "array", "items": {"$ref": "#/properties/tree"}}]},
    )
    schema["properties"][text] = {"type": "string", "description": text, "default": text, "examples": [text]}
    schema |= {"title": text, "description": text}
    return {"title": text, "description": text, "inputSchema": schema, "annotations": {"title": text}}


def many(count: int) -> Document:
    """Return a contract with many tools, each with a few properties and an output schema."""
    inner = {"type": "array", "items": _object("x y", x={"type": "number"}, y={"type": "number"}, label=TEXT)}
    return {
        "tools": [
            {
                "name": f"tool-{number}",
                "description": f"Does the thing number {number}, and says how it went.",
                "inputSchema": _object(
                    "name points",
                    name={**TEXT, "description": "What to call it."},
                    points=inner,
                    mode={"enum": ["fast", "slow", f"m{number}"], "default": "fast"},
                    limit={"type": "integer", "minimum": 0, "default": number},
                ),
                "outputSchema": _object("done", done={"type": "boolean"}, number={"type": "integer"}),
            }
            for number in range(count)
        ]
    }
