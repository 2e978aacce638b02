"""`mcp-bindgen model`: print the model of a revision as JSON."""

from __future__ import annotations

import json

from mcp_bindgen.bridge.document import json_schema, write
from mcp_bindgen.spec import BadInput

from . import terminal
from .options import JsonSchema
from .reading import OptionalRevisionName, Reading


def model(revision: OptionalRevisionName = None, schema: JsonSchema = False, *, reading: Reading) -> None:
    """Print the model of a revision as JSON: definitions, methods, errors, facts, descriptions and conversions.

    `diff` and `generate --schema` accept the file. docs/reference/model.md describes the format.

    Examples:

    `mcp-bindgen model 2026-07-28 > model.json`

    `mcp-bindgen model 2026-07-28 --extension tasks`

    `mcp-bindgen model --json-schema`
    """
    if schema == (revision is not None):
        raise BadInput("give either a revision or --json-schema", fix="as in: mcp-bindgen model 2026-07-28")
    if revision is None:
        terminal.write(json.dumps(json_schema(), ensure_ascii=False, indent=2) + "\n")
        return
    terminal.write(write(reading.model(revision)))
