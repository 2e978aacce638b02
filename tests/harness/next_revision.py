"""A fictional revision: the newest one with the kinds of change that the next one may bring.

Each step changes a schema in place, as the publishers of the schema could: it keeps the conventions and adds no
information about the change.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from mcp_bindgen.spec import Store

from .small_schemas import Schema, record, ref

BASIS = "2026-07-28"
NAME = "2027-01-15"

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}

ATTEMPT = "io.modelcontextprotocol/attempt"
TRACE = "io.modelcontextprotocol/trace"

FACTS = f"""
# --- what {NAME} needs beside its schema

[defaults]
"{ATTEMPT}" = 1
"advice" = "none"

[capabilities]
"tools/preview" = "server.tools.preview"
"notifications/tools/retired" = "server.tools"

[arguments]
"tools/preview" = ["name", "arguments"]
"templates/list" = ["cursor"]

[cache_invalidations]
"notifications/resources/list_changed" = ["resources/list", "templates/list"]
"notifications/resources/updated" = ["resources/fetch"]

[names]
"resources/fetch" = "uri"
"tools/preview" = "name"
"""
"""Facts that a maintainer writes after reading `schema status`."""


def next_revision() -> Schema:
    """Return the schema file of the revision."""
    definitions: Schema = copy.deepcopy(dict(Store().effective(BASIS).definitions))
    add_a_method_and_a_notification(definitions)
    rename(definitions, "resources/read", "resources/fetch", "ReadResource", "FetchResource")
    move_to_a_capability_of_its_own(definitions)
    let_clients_tell_progress(definitions)
    pull_out_logging(definitions)
    pull_out_sampling_and_roots(definitions)
    add_envelope_members(definitions)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}


def request(method: str, params: str) -> Schema:
    """Return the definition of a request in the form that upstream has published since 2025-11-25."""
    return record(
        "id jsonrpc method params",
        id=ref("RequestId"),
        jsonrpc={"const": "2.0", "type": "string"},
        method={"const": method, "type": "string"},
        params=ref(params),
    )


def response(result: str) -> Schema:
    return record(
        "id jsonrpc result", id=ref("RequestId"), jsonrpc={"const": "2.0", "type": "string"}, result=ref(result)
    )


def notification(method: str, params: str) -> Schema:
    return record(
        "jsonrpc method params",
        jsonrpc={"const": "2.0", "type": "string"},
        method={"const": method, "type": "string"},
        params=ref(params),
    )


def add_a_method_and_a_notification(definitions: Schema) -> None:
    """Add `tools/preview`, which needs the capability `tools.preview`, and a notification of retired tools."""
    definitions["PreviewToolRequest"] = request("tools/preview", "PreviewToolRequestParams")
    definitions["PreviewToolRequestParams"] = record(
        "_meta name",
        _meta=ref("RequestMetaObject"),
        name=TEXT,
        arguments={"type": "object", "additionalProperties": {}},
    )
    definitions["PreviewToolResult"] = record(
        "resultType summary",
        _meta=ref("ResultMetaObject"),
        resultType=TEXT,
        summary=TEXT,
        cost=record("", tokens=WHOLE),
    )
    definitions["PreviewToolResultResponse"] = response("PreviewToolResult")
    definitions["ToolRetiredNotification"] = notification(
        "notifications/tools/retired", "ToolRetiredNotificationParams"
    )
    definitions["ToolRetiredNotificationParams"] = record("name", _meta=ref("NotificationMetaObject"), name=TEXT)
    definitions["ServerCapabilities"]["properties"]["tools"]["properties"]["preview"] = {"type": "boolean"}
    definitions["ClientRequest"]["anyOf"].append(ref("PreviewToolRequest"))
    definitions["ServerResult"]["anyOf"].append(ref("PreviewToolResult"))
    definitions["ServerNotification"]["anyOf"].append(ref("ToolRetiredNotification"))


def rename(definitions: Schema, old: str, new: str, old_stem: str, new_stem: str) -> None:
    """Rename a method and its definitions wherever their names occur."""
    text = json.dumps(definitions)
    changed: Schema = json.loads(text.replace(json.dumps(old), json.dumps(new)).replace(old_stem, new_stem))
    definitions.clear()
    definitions.update(changed)


def move_to_a_capability_of_its_own(definitions: Schema) -> None:
    """Rename `resources/templates/list` to `templates/list`, with a separate server capability."""
    rename(definitions, "resources/templates/list", "templates/list", "ListResourceTemplates", "ListTemplates")
    definitions["ServerCapabilities"]["properties"]["templates"] = record()


def let_clients_tell_progress(definitions: Schema) -> None:
    """Let both sides send `notifications/progress`; a union of one member, published inlined, gets a second member."""
    definitions["ClientNotification"] = {"anyOf": [ref("CancelledNotification"), ref("ProgressNotification")]}


def pull_out_logging(definitions: Schema) -> None:
    """Move logging from the core to an extension: capability, notification, level, and the key of `_meta`."""
    remove(definitions, "LoggingLevel", "LoggingMessageNotification", "LoggingMessageNotificationParams")
    del definitions["ServerCapabilities"]["properties"]["logging"]
    del definitions["RequestMetaObject"]["properties"]["io.modelcontextprotocol/logLevel"]


def pull_out_sampling_and_roots(definitions: Schema) -> None:
    """Leave elicitation as the only request inside of results; its union of one member is published inlined."""
    for name in ("sampling", "roots"):
        del definitions["ClientCapabilities"]["properties"][name]
    gone = [name for name in definitions if name.startswith(("CreateMessage", "Sampling", "ListRoots", "Model"))]
    remove(definitions, *gone, "Root", "ToolChoice", "ToolUseContent", "ToolResultContent")
    for union, only in (("InputRequest", "ElicitRequest"), ("InputResponse", "ElicitResult")):
        if len(definitions[union]["anyOf"]) == 1:
            definitions[union] = copy.deepcopy(definitions[only])


def add_envelope_members(definitions: Schema) -> None:
    """Add an attempt count and an optional trace to every request, and advice to every result of a server."""
    meta = definitions["RequestMetaObject"]
    meta["properties"] |= {ATTEMPT: {"type": "integer", "minimum": 1}, TRACE: TEXT}
    meta["required"] = sorted([*meta["required"], ATTEMPT])
    for definition in definitions.values():
        if "resultType" in definition.get("properties", {}):
            definition["properties"]["advice"] = TEXT
            definition["required"] = sorted([*definition["required"], "advice"])


# --- the core without a part ----------------------------------------------------------------------------------

EXTENSIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "resources": (
        "ServerCapabilities",
        (
            "resources/list",
            "resources/read",
            "resources/templates/list",
            "notifications/resources/list_changed",
            "notifications/resources/updated",
        ),
    ),
    "tools": ("ServerCapabilities", ("tools/list", "tools/call", "notifications/tools/list_changed")),
    "elicitation": ("ClientCapabilities", ("elicitation/create",)),
    "subscriptions": ("", ("subscriptions/listen", "notifications/subscriptions/acknowledged")),
    "cancelled": ("", ("notifications/cancelled",)),
}
"""Part of the core -> definition with its capability, and its methods."""


def without(extension: str) -> Schema:
    """Return the newest revision's schema without a part."""
    definitions: Schema = copy.deepcopy(dict(Store().effective(BASIS).definitions))
    owner, methods = EXTENSIONS[extension]
    messages = [
        name
        for name, definition in definitions.items()
        if name.endswith(("Request", "Notification")) and method_of(definition) in methods
    ]
    stems = [name.removesuffix("Request") for name in messages if name.endswith("Request")]
    answers = [f"{stem}{suffix}" for stem in stems for suffix in ("Result", "ResultResponse")]
    remove(definitions, *messages, *(name for name in answers if name in definitions))
    if owner:
        del definitions[owner]["properties"][extension]
    return {"$defs": definitions}


def method_of(definition: Schema) -> str | None:
    named = definition.get("properties", {}).get("method", {})
    return named.get("const") if isinstance(named, dict) else None


def remove(definitions: Schema, *names: str) -> None:
    """Remove definitions, also as members of unions."""
    for name in names:
        del definitions[name]
    gone = [ref(name) for name in names]
    for definition in definitions.values():
        prune(definition, gone)


def prune(node: Any, gone: list[Schema]) -> None:
    if isinstance(node, dict):
        if isinstance(node.get("anyOf"), list):
            node["anyOf"] = [member for member in node["anyOf"] if member not in gone]
        for child in node.values():
            prune(child, gone)
    elif isinstance(node, list):
        for child in node:
            prune(child, gone)
