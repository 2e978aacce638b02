"""Random damage to a schema, as unfinished edits and worse mistakes cause it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

from mcp_bindgen.spec.keywords import STRUCTURE
from tests.harness.small_schemas import Schema, ref

JUNK: tuple[Any, ...] = (None, True, False, -1, 1.5, 2**70, "", "a", "#", [], ["a"], [1], {}, {"a": 1}, {"type": "x"})
NAMES = ("", "a b", "a/b", "_x", "list", "None", "Model", "Json", "É", "x" * 40, "$ref", "method", "params", "Request")
KEYWORDS = (
    *STRUCTURE,
    *["default", "description", "not", "if", "patternProperties", "propertyNames", "prefixItems", "nullable", "x-note"],
)
_SCHEMA_MAPS = ("properties", "$defs")

Damage = Callable[[Schema, Random], None]


def damaged(document: Schema, random: Random) -> Schema:
    """Return a copy of a schema with one to four kinds of damage."""
    document = copy.deepcopy(document)
    for _ in range(random.randint(1, 4)):
        random.choice(DAMAGES)(document, random)
    return document


def schemas(document: Schema) -> list[Schema]:
    """Return all recognizable schemas of a document."""
    found: list[Schema] = []
    pending: list[Any] = list(document["$defs"].values())
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            found.append(node)
            pending.extend(value for value in node.values() if isinstance(value, dict))
            pending.extend(one for value in node.values() if isinstance(value, list) for one in value)
            pending.extend(
                one for name in _SCHEMA_MAPS if isinstance(node.get(name), dict) for one in node[name].values()
            )
    return found


def _some(document: Schema, random: Random) -> Schema:
    return random.choice(schemas(document) or [{}])


def _name(document: Schema, random: Random) -> str:
    return str(random.choice([*document["$defs"], "Gone"]))


def drop_definition(document: Schema, random: Random) -> None:
    if len(document["$defs"]) > 1:
        del document["$defs"][random.choice(list(document["$defs"]))]


def rename_definition(document: Schema, random: Random) -> None:
    name = random.choice(list(document["$defs"]))
    other = random.choice([*NAMES, name.lower(), f"{name}Params", f"{name}Request", "FindBookRequest"])
    document["$defs"][other] = document["$defs"].pop(name)


def copy_definition(document: Schema, random: Random) -> None:
    """Duplicate a definition under another name, which may suggest another kind of definition."""
    name = random.choice(list(document["$defs"]))
    other = random.choice([f"{name}2", f"Other{name}", name.upper(), f"{name}Request", f"{name}Notification"])
    document["$defs"][other] = copy.deepcopy(document["$defs"][name])


def drop_keyword(document: Schema, random: Random) -> None:
    schema = _some(document, random)
    if schema:
        del schema[random.choice(list(schema))]


def retype_keyword(document: Schema, random: Random) -> None:
    schema = _some(document, random)
    if schema:
        schema[random.choice(list(schema))] = copy.deepcopy(random.choice(JUNK))


def add_keyword(document: Schema, random: Random) -> None:
    _some(document, random)[random.choice(KEYWORDS)] = copy.deepcopy(random.choice(JUNK))


def add_good_keyword(document: Schema, random: Random) -> None:
    """Add a keyword with a well-typed value, in a place where it may be invalid."""
    some = copy.deepcopy(_some(document, random))
    name, value = random.choice(
        [
            ("type", random.choice(["string", "integer", "object", "array", "null", ["object", "null"], ["string"]])),
            ("allOf", [some, ref(_name(document, random))]),
            ("anyOf", [some, {"type": "null"}]),
            ("oneOf", [some, ref(_name(document, random)), {"type": "number"}]),
            ("additionalProperties", random.choice([False, some])),
            ("properties", {random.choice(NAMES): some, "a_b": {}, "aB": {}}),
            ("required", ["a", "method"]),
            ("items", some),
            ("enum", ["a", 1, None, 1.5]),
            ("const", random.choice(["a", 1, {}, "books/borrow"])),
            ("minimum", 3),
            ("maxLength", 2),
            ("pattern", random.choice(["^a", "(?!a)", "("])),
            ("patternProperties", {"^a": some}),
            ("not", {"const": "a"}),
        ]
    )
    _some(document, random)[name] = value


def redirect_reference(document: Schema, random: Random) -> None:
    _some(document, random)["$ref"] = random.choice(
        [f"#/$defs/{_name(document, random)}", "#", "#/definitions/Loan", "x"]
    )


def replace_definition(document: Schema, random: Random) -> None:
    document["$defs"][_name(document, random)] = copy.deepcopy(random.choice([*JUNK, *schemas(document)[:20]]))


DAMAGES: tuple[Damage, ...] = (
    drop_definition,
    rename_definition,
    copy_definition,
    drop_keyword,
    retype_keyword,
    add_keyword,
    add_good_keyword,
    add_good_keyword,
    redirect_reference,
    replace_definition,
)
