"""Verdicts of the effective schema and of the published schema, by a JSON Schema validator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from jsonschema_rs import Draft202012Validator, Registry

from mcp_bindgen.spec import Schema
from mcp_bindgen.spec.keywords import DIALECT
from mcp_bindgen.spec.references import as_uri, reference, with_uris

_URN = "urn:mcp-bindgen:schema"


class Judge:
    """Validator of the documents of one schema.

    Args:
        definitions: Definition name -> JSON Schema.
    """

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions
        self._validators: dict[str, Draft202012Validator] = {}

    @cached_property
    def _registry(self) -> Registry:
        definitions = {name: with_uris(schema) for name, schema in self._definitions.items()}
        return Registry([(_URN, {"$schema": DIALECT, "$defs": definitions})])

    def accepts(self, name: str, document: Any) -> bool:
        """Return whether a definition accepts a document; false for a name that is not in the schema."""
        if name not in self._definitions:
            return False
        if name not in self._validators:
            schema = {"$ref": _URN + as_uri(reference(name))}
            self._validators[name] = Draft202012Validator(schema, registry=self._registry)
        return self._validators[name].is_valid(document)
