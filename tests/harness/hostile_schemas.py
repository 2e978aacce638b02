"""A draft whose names, constants and texts are markup, paths and attributes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcp_bindgen.spec import Store, Upstream
from mcp_bindgen.spec.references import reference

MARKUP = "``<img src=x onerror=boo()>"
ATTRIBUTES = "b c onclick=boo()"
METHOD = f"x/{MARKUP}\n```\n<script>boo()</script>"


def hostile_store(folder: Path) -> Store:
    """Return the revisions of the checkout with a hostile draft in the folder of a user."""
    schema = _hostile(json.loads((Store().root / "2025-11-25" / "schema.json").read_text("utf-8")))
    (folder / "hostile.json").write_text(json.dumps(schema), "utf-8")
    Store(folder / "schema").add("draft", Upstream(folder / "hostile.json"), prose=True)
    return Store(users=folder / "schema")


def _hostile(schema: dict[str, Any]) -> dict[str, Any]:
    own = schema["$defs"]
    request = own["PingRequest"]
    words = f"{MARKUP} `a`{{onclick=boo()}} `a` ``<img> \\`<img>`\n{{: onclick=boo() }}"
    fields = {MARKUP: {"const": f"q{MARKUP}|", "description": words}, ATTRIBUTES: {"enum": ["`a", "b|c``d"]}}
    own["EvilRequest"] = {**request, "properties": {**request["properties"], "method": {"const": METHOD}}}
    own["ClientRequest"]["anyOf"].append({"$ref": "#/$defs/EvilRequest"})
    own["ServerCapabilities"]["properties"] |= {MARKUP: {"type": "object"}, ATTRIBUTES: {"type": "object"}}
    link = f"]( javascript:boo() {ATTRIBUTES}"
    for name in ("../../x", "index", f"A {MARKUP}", link, "a\n```\n<script>", "# \u202e"):
        members = {**fields, "own": {"$ref": reference(name)}}
        own[name] = {"type": "object", "description": words + name, "properties": members}
    return schema
