"""State of the passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mcp_bindgen.spec import DiagnosticContext, EffectiveSchema, Schema

from .. import naming
from ..model import Capability, Definition, Definitions, ErrorCode, Extension, Facts, Method, Type


@dataclass(frozen=True)
class BuildState(Definitions):
    """A partial protocol: each pass returns a copy with further parts.

    Attributes:
        source: The effective schema.
        schemas: Definition name -> JSON Schema, rewritten by the first passes.
        context: Reports broken rules.
        origins: Definition of an extension -> id of the extension.
        inline_names: The definitions that were inline objects.
        definitions: The same definitions as types of the protocol model.
        methods: Method name -> method.
        errors: Error codes.
        capabilities: The capabilities of both sides.
        facts: Other facts that a connection needs.
        extensions: The extensions.
    """

    source: EffectiveSchema
    schemas: Mapping[str, Schema]
    context: DiagnosticContext = field(default_factory=DiagnosticContext)
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    inline_names: frozenset[str] = frozenset()
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
        """Return the facts about a definition or a method, from its extension or from the core."""
        return self.source.facts(one.origin)

    def extracted(
        self, schemas: Mapping[str, Schema], found: Mapping[str, Schema], tops: Mapping[str, str]
    ) -> BuildState:
        """Return a copy with extracted definitions.

        Args:
            schemas: Definition name -> JSON Schema, without the extracted definitions.
            found: The same for the extracted definitions.
            tops: Name of each extracted definition -> the definition that contained it.
        """
        origins = {name: self.origins[top] for name, top in tops.items() if top in self.origins}
        return replace(
            self,
            schemas={**schemas, **found},
            origins={**self.origins, **origins},
            inline_names=self.inline_names | found.keys(),
        )

    def retyped(self, change: Callable[[str, Type], Type]) -> BuildState:
        """Return a copy in which definitions have other types: `change` returns one for a name and a type."""
        known = self.definitions.items()
        return replace(self, definitions={name: replace(one, type=change(name, one.type)) for name, one in known})

    def of_core(self) -> dict[str, Definition]:
        """Return the definitions of the core."""
        return {name: definition for name, definition in self.definitions.items() if not definition.origin}


def numbered_name(
    context: DiagnosticContext, what: str, name: str, is_taken: Callable[[str], bool], pointer: str, fix: str
) -> str:
    """Return a name with a number for an inline type whose own name is taken, and record a diagnostic.

    Args:
        context: Records the diagnostic.
        what: Short description of the type, for the diagnostic.
        name: Name that is taken.
        is_taken: Returns whether a name is taken.
        pointer: Place of the type.
        fix: Recommended action.

    Raises:
        BadInput: In strict mode.
    """
    free = naming.numbered(name, is_taken)
    context.report("inline-name-taken", pointer, type=what, name=name, other=free, fix=fix)
    return free
