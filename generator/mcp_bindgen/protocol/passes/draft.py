"""The state that the passes hand on to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_bindgen.spec import EffectiveSchema, Reading, Schema

from ..model import Capability, Definition, ErrorCode, Extension, Facts, Method


@dataclass(frozen=True)
class Draft:
    """A protocol in the making: each pass returns a copy with more of it filled in.

    Attributes:
        source: What it all comes from.
        schemas: Definition name -> JSON Schema, rewritten by the first passes.
        reading: Decides about what breaks a rule.
        origins: Definition -> id of the extension that brings it, for those that are not core's.
        renamed: The definitions that have another name in the schema -> that name.
        hoisted: The definitions that were inline objects.
        definitions: The same definitions as types of the protocol model.
        methods: Method name -> method.
        errors: Error codes.
        capabilities: What either side may declare.
        facts: What a connection must know beside that.
        extensions: What it is read with.
    """

    source: EffectiveSchema
    schemas: Mapping[str, Schema]
    reading: Reading = field(default_factory=Reading)
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    hoisted: frozenset[str] = frozenset()
    definitions: Mapping[str, Definition] = field(default_factory=dict[str, Definition])
    methods: Mapping[str, Method] = field(default_factory=dict[str, Method])
    errors: tuple[ErrorCode, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    facts: Facts = field(default_factory=Facts)
    extensions: tuple[Extension, ...] = ()

    @property
    def semantics(self) -> Mapping[str, Any]:
        """The facts of `semantics.toml`."""
        return self.source.semantics

    def facts_about(self, one: Definition | Method) -> Mapping[str, Any]:
        """Return the facts for a definition or a method: those of the extension that brings it, else core's."""
        return self.source.facts(one.origin)

    def of_core(self) -> dict[str, Definition]:
        """Return the definitions that no extension brings."""
        return {name: definition for name, definition in self.definitions.items() if not definition.origin}
