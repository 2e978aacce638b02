"""Places of a real schema that mutations can change, and their names in a comparison."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from mcp_bindgen.ir import Protocol
from tests.harness.small_schemas import Schema, ref

Definitions = Mapping[str, Schema]

ROLES = frozenset({"ClientRequest", "ClientNotification", "ServerRequest", "ServerNotification", "InputRequest"})
UNTOUCHED = ROLES | {"ClientResult", "ServerResult", "JSONValue", "JSONObject", "JSONArray"}
"""Definitions that assign messages to senders, or stand for any JSON: they are not types of the API."""

FIXED = frozenset({"jsonrpc", "id", "method"})


@dataclass(frozen=True)
class Place:
    """A schema inside of a definition.

    Attributes:
        definition: Name of the definition.
        path: Path from the definition's schema.
        subjects: Possible names in a comparison.
    """

    definition: str
    path: tuple[Any, ...]
    subjects: frozenset[str]

    def below(self, *steps: Any, called: Iterable[str]) -> Place:
        """Return a place further inside, with `called` appended to its names."""
        endings = tuple(called)
        return Place(
            self.definition,
            (*self.path, *steps),
            frozenset(subject + ending for subject in self.subjects for ending in endings),
        )

    def __str__(self) -> str:
        return min(self.subjects, key=len)


def piece(name: str) -> tuple[str, ...]:
    """Return the possible notations of a member in a subject."""
    if name.startswith("$"):
        return f'["{name}"]', f".{name}"
    return (f".{name}",) if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) else (f'["{name}"]',)


def at(schema: Any, path: Iterable[Any]) -> Any:
    """Return the value at a path."""
    for step in path:
        schema = schema[step]
    return schema


def put(definitions: Definitions, place: Place, schema: Schema) -> dict[str, Schema]:
    """Return the definitions with another schema at a place."""
    if not place.path:
        return {**definitions, place.definition: schema}
    changed = deepcopy(definitions[place.definition])
    at(changed, place.path[:-1])[place.path[-1]] = schema
    return {**definitions, place.definition: changed}


class Places:
    """All places of a schema that a mutation may change, and the users of each definition.

    Args:
        definitions: The definitions of the schema.
        protocol: The protocol model with its messages.
    """

    def __init__(self, definitions: Definitions, protocol: Protocol) -> None:
        self.definitions = definitions
        self.protocol = protocol
        self.notices = {name for name, definition in protocol.definitions.items() if definition.deprecated}
        self.errors = {error.definition for error in protocol.errors if error.definition}
        self.parts = _parts(definitions)
        self.users = _users(definitions)
        self.nodes = [
            found
            for name, schema in definitions.items()
            if name not in UNTOUCHED and not name.endswith("ResultResponse")
            for found in _inside(Place(name, (), self.subjects(name)), schema)
        ]

    def subjects(self, name: str) -> frozenset[str]:
        """Return possible names of a definition; params of a single message are named after that message."""
        messages = [user for user in self.users[name] if _is_params(self.definitions[user], name)]
        called = {f"{user}.params" for user in messages}
        if len(messages) == 1 and self.users[name] == {messages[0]}:
            return frozenset(called)
        for user in self.users[name]:
            holders = [above for above in self.users[user] if _is_params(self.definitions[above], user)]
            if holders and "anyOf" in self.definitions[user]:
                called |= {f"{above}.params|{name}" for above in holders}
        return frozenset({name, *called})

    def is_capability(self, place: Place) -> bool:
        """Return True if the members of this object are capabilities."""
        return place.definition in ("ClientCapabilities", "ServerCapabilities")

    def is_part(self, place: Place) -> bool:
        """Return True if other definitions include this one in an `allOf`."""
        return place.definition in self.parts


def _inside(place: Place, schema: Schema) -> Iterator[Place]:
    """Yield a place and the places inside of it; skip schemas with `allOf`."""
    if "allOf" in schema:
        return
    yield place
    for name, child in schema.get("properties", {}).items():
        if isinstance(child, dict) and not (name in FIXED and not place.path and "method" in schema["properties"]):
            yield from _inside(place.below("properties", name, called=piece(name)), child)
    if isinstance(schema.get("items"), dict):
        yield from _inside(place.below("items", called=["[]"]), schema["items"])
    if isinstance(schema.get("additionalProperties"), dict) and schema["additionalProperties"]:
        yield from _inside(place.below("additionalProperties", called=["{}"]), schema["additionalProperties"])


def named_in(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].rpartition("/")[2]
        for child in node.values():
            yield from named_in(child)
    elif isinstance(node, list):
        for child in node:
            yield from named_in(child)


def _users(definitions: Definitions) -> dict[str, set[str]]:
    """Return definition -> definitions that refer to it."""
    users: dict[str, set[str]] = {name: set() for name in definitions}
    for name, schema in definitions.items():
        for target in named_in(schema):
            users[target].add(name)
    return users


def _parts(definitions: Definitions) -> dict[str, set[str]]:
    """Return definition -> definitions that include it in an `allOf`."""
    found: dict[str, set[str]] = {}

    def look(owner: str, node: Any) -> None:
        if isinstance(node, dict):
            for part in node.get("allOf", ()):
                if isinstance(part, dict) and "$ref" in part:
                    found.setdefault(part["$ref"].rpartition("/")[2], set()).add(owner)
            for child in node.values():
                look(owner, child)
        elif isinstance(node, list):
            for child in node:
                look(owner, child)

    for name, schema in definitions.items():
        look(name, schema)
    return found


def _is_params(schema: Schema, name: str) -> bool:
    return schema.get("properties", {}).get("params") == ref(name) and "method" in schema["properties"]
