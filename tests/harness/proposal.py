"""A revision with SEP-3279 and six further changes, and its rules: data, and functions of the user.

The files of the proposal are those of the tutorial. Each further change is of a kind of its own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from mcp_bindgen.spec import Store

from .commands import ROOT
from .next_revision import TEXT, rename
from .pages import blocks
from .small_schemas import Schema, record, ref

PAGE = ROOT / "docs" / "tutorials" / "new-revision.md"
FILES = {block.name: block.text for block in blocks(PAGE) if block.name is not None}
"""Name -> text of the files of the tutorial."""

OLD, NEW = "2026-07-28", "2026-12-01"

MAX_TEXT = 8
"""The new limit of the text to complete."""

TOO_LONG = f"MCP {NEW} completes short texts"

_UP = f"""
"resources/read" = {{ rename = "resources/fetch", because = "MCP {NEW} fetches resources" }}
Prompt.description = {{ give = "", because = "MCP {NEW} describes each prompt" }}
Resource.size = {{ move = ["details", "size"], because = "MCP {NEW} has the size in the details" }}
CompleteRequestParamsArgument.value = {{ do = "refuse", because = "{TOO_LONG}" }}
"""
_DOWN = f"""
"*".content.TableContent = {{ by = "tables:as_text", because = "MCP {OLD} has no tables" }}
"""

TABLES = '''
from mcp_bindgen.bridging import Json, RuleContext


def as_text(value: Json, context: RuleContext) -> Json:
    """Write a table as text, with a line for each row."""
    if value["type"] != "table":
        return value
    return {"type": "text", "text": "\\n".join(" ".join(row) for row in value["rows"])}
'''


def rules() -> dict[str, str]:
    """Return the files of rules and functions, by name, for the folder of the schemas."""
    up, table, down = FILES["bridges.toml"].partition(f'["{NEW} -> {OLD}"]\n')
    return {
        "bridges.toml": f"{up.rstrip()}{_UP}\n{table}{down.rstrip()}{_DOWN}",
        "sep_3279.py": FILES["sep_3279.py"],
        "tables.py": TABLES,
    }


def schema() -> Schema:
    """Return the schema file of the revision."""
    definitions: Schema = copy.deepcopy(dict(Store().effective(OLD).definitions))
    program: dict[str, Any] = {"__name__": "propose"}
    exec(compile(FILES["propose.py"], "propose.py", "exec"), program)
    changes: list[Callable[[Schema], None]] = [
        program["propose"],
        tighten_limits,
        require_a_member,
        add_a_variant,
        rename_a_method,
        move_a_member,
    ]
    for change in changes:
        change(definitions)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}


def tighten_limits(definitions: Schema) -> None:
    """Limit the version of an implementation, which every request carries, and the text to complete."""
    definitions["Implementation"]["properties"]["version"]["maxLength"] = 64
    argument = definitions["CompleteRequestParams"]["properties"]["argument"]
    argument["properties"]["value"]["maxLength"] = MAX_TEXT


def require_a_member(definitions: Schema) -> None:
    definitions["Prompt"]["required"] = [*definitions["Prompt"]["required"], "description"]


def add_a_variant(definitions: Schema) -> None:
    rows = {"type": "array", "items": {"type": "array", "items": TEXT}}
    definitions["TableContent"] = record("rows type", rows=rows, type={"type": "string", "const": "table"})
    definitions["ContentBlock"]["anyOf"].append(ref("TableContent"))


def rename_a_method(definitions: Schema) -> None:
    rename(definitions, "resources/read", "resources/fetch", "ReadResource", "FetchResource")


def move_a_member(definitions: Schema) -> None:
    members = definitions["Resource"]["properties"]
    members["details"] = record(size=members.pop("size"))
