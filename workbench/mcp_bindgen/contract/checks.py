"""Checks of contract documents: known members, valid entries, valid schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import jsonschema_rs

from mcp_bindgen.app.catalog import SCOPES
from mcp_bindgen.runtime.similar_names import similar
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.errors import first_line, suggestion
from mcp_bindgen.spec.json import is_array, is_object, join

from .model import LISTINGS

_MEMBERS = ("serverInfo", "instructions", "revision", *LISTINGS)
_STAMP = "generated"
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


def contents(document: Any) -> dict[str, Any]:
    """Return the lists of a contract document, and its other known members.

    Raises:
        BadInput: The document is not an object, or has an unknown member.
    """
    if not is_object(document):
        raise BadInput("a contract must be an object", pointer="", fix='begin with {"tools": [...]}')
    page = _page_members() if document.keys() - {_STAMP, *_MEMBERS} else frozenset[str]()
    listing = set(document) <= page | LISTINGS.keys()
    if listing and document.get("nextCursor"):
        raise BadInput(
            "this is one page of a list, and there are more", pointer="/nextCursor", fix="put all pages into one"
        )
    members = {name: value for name, value in document.items() if name != _STAMP and not (listing and name in page)}
    for name in members:
        if name not in _MEMBERS:
            fix = suggestion(name, _MEMBERS, f"a contract has {', '.join(_MEMBERS)}")
            raise BadInput(f"contracts have no member {name!r}", pointer=join("", name), fix=fix)
    return members


def check_members(members: Mapping[str, Any], revision: str | None = None) -> None:
    """Check the members against the definitions of the protocol.

    Args:
        members: The result of `contents`.
        revision: The revision; by default the revision in the contract, else the newest released revision.

    Raises:
        BadInput: A member is not valid; with its pointer.
    """
    store = Store()
    pins = list(store.pins)
    revision = revision or members.get("revision", store.newest)
    if revision not in pins:
        fix = suggestion(str(revision), pins, f"use one of {', '.join(pins)}")
        raise BadInput(f"there is no revision {revision!r}", pointer="/revision", fix=fix)
    if not isinstance(members.get("instructions", ""), str):
        raise BadInput("instructions are a text", pointer="/instructions", fix="put them in quotes")
    if "serverInfo" in members:
        _check(members["serverInfo"], "/serverInfo", _validator(revision, "Implementation"))
    for member, listing in LISTINGS.items():
        entries = members.get(member, [])
        if not is_array(entries):
            raise BadInput(f"{member} is a list", pointer=f"/{member}", fix="put the entries into [ ]")
        seen: dict[str, int] = {}
        for index, entry in enumerate(entries):
            _check(entry, f"/{member}/{index}", _validator(revision, listing.definition))
            _check_scopes(entry.get(SCOPES, []), f"/{member}/{index}/{SCOPES}")
            name = entry[listing.key]
            if name in seen:
                raise BadInput(
                    f"{name!r} is there twice, first as entry {seen[name]}",
                    pointer=f"/{member}/{index}/{listing.key}",
                    fix="remove one of them or rename it",
                )
            seen[name] = index


def without_nulls(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document without optional members of entries with the invalid value `null`.

    Clients treat such a member as absent, so the entry is usable. Schemas in entries do not change.
    """
    store, found = Store(), dict(document)
    for revision in store.pins:
        if revision not in (document.get("revision"), store.newest):
            continue
        definitions = store.effective(revision).definitions
        for member in LISTINGS.keys() & found.keys():
            schema = {"items": definitions.get(LISTINGS[member].definition, {})}
            found[member] = _without_nulls(found[member], schema, definitions)
    return found


def _without_nulls(value: Any, schema: Any, definitions: Mapping[str, Any]) -> Any:
    schema = definitions[schema["$ref"].removeprefix("#/$defs/")] if "$ref" in schema else schema
    if is_array(value) and "items" in schema:
        return [_without_nulls(one, schema["items"], definitions) for one in value]
    if not is_object(value) or "properties" not in schema:
        return value
    known, required = schema["properties"], schema.get("required", ())
    return {
        name: _without_nulls(one, known.get(name, {}), definitions)
        for name, one in value.items()
        if one is not None or name not in known or name in required or _allows_null(known[name], definitions)
    }


def _allows_null(schema: Any, definitions: Mapping[str, Any]) -> bool:
    return jsonschema_rs.is_valid({**schema, "$defs": definitions}, None)


def check_spelling(document: Any) -> None:
    """Check that no member of an entry is a misspelled member of the protocol.

    Raises:
        BadInput: A member is similar to a missing member of the protocol.
    """
    for member, listing in LISTINGS.items():
        known = _properties(listing.definition)
        entries: Any = document.get(member) if is_object(document) else ()
        for index, entry in enumerate(entries if is_array(entries) else ()):
            for name in entry.keys() - set(known) if is_object(entry) else ():
                near = similar(name.replace("_", "").lower(), (one.lower() for one in known), cutoff=0.9)
                meant = [one for one in known if one.lower() in near and one not in entry]
                if meant:
                    pointer = join(f"/{member}/{index}", name)
                    raise BadInput(f"{name!r} says nothing here", pointer=pointer, fix=f"did you mean {meant[0]}?")


def check_schema(schema: Any, pointer: str) -> None:
    """Check that `schema` is a JSON Schema of its dialect.

    Raises:
        BadInput: It is not a JSON Schema, or its dialect is unknown.
    """
    try:
        jsonschema_rs.meta.validate(schema, registry=jsonschema_rs.Registry([]))  # without it, the dialect is fetched
    except jsonschema_rs.ReferencingError:
        raise BadInput(
            f"the dialect {schema.get('$schema')!r} is not known, and nothing is fetched",
            pointer=f"{pointer}/$schema",
            fix="use JSON Schema 2020-12, or leave '$schema' out",
        ) from None
    except jsonschema_rs.ValidationError as error:
        raise BadInput(
            f"is no JSON Schema: {first_line(error.message)}",
            pointer=join(pointer, *error.instance_path),
            fix="correct it there",
        ) from None


def check_compiles(schema: Any, pointer: str) -> None:
    """Check that `schema` gives a validator without network access.

    Raises:
        BadInput: It does not give a validator.
    """
    try:
        jsonschema_rs.validator_for(schema, validate_formats=False, offline=True)
    except (ValueError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(f"no validator can be made of it: {reason}", pointer=pointer, fix="correct the schema") from None


@cache
def _properties(definition: str) -> tuple[str, ...]:
    """Return the members of a definition of the newest revision."""
    store = Store()
    return tuple(store.effective(store.newest).definitions[definition]["properties"])


@cache
def _page_members() -> frozenset[str]:
    """Return the members of a list result in any revision, without its entries."""
    store = Store()
    results = (store.effective(revision).definitions.get("ListToolsResult", {}) for revision in store.pins)
    return frozenset(name for result in results for name in result.get("properties", ())) - LISTINGS.keys()


@cache
def _validator(revision: str, definition: str) -> jsonschema_rs.Draft202012Validator:
    definitions = dict(Store().effective(revision).definitions)
    if definition not in definitions:
        raise BadInput(f"MCP {revision} has no {definition}", fix="hold the contract against another revision")
    return jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": definitions}, offline=True)


def _check(entry: Any, pointer: str, validator: jsonschema_rs.Draft202012Validator) -> None:
    error = next(iter(validator.iter_errors(entry)), None)
    if error is not None:
        raise BadInput(first_line(error.message), pointer=join(pointer, *error.instance_path), fix="correct it there")


def _check_scopes(scopes: Any, pointer: str) -> None:
    """Check the scopes of an entry (RFC 6749, section 3.3)."""
    fix = 'write a list of scopes, like ["files:read"]'
    if not is_array(scopes):
        raise BadInput("scopes are a list", pointer=pointer, fix=fix)
    for index, scope in enumerate(scopes):
        if not isinstance(scope, str) or _SCOPE.fullmatch(scope) is None:
            raise BadInput(f"{scope!r} is not a scope", pointer=join(pointer, index), fix=fix)
