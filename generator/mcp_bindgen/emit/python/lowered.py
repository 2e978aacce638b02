"""The Python view of a revision: the protocol model under the names of Python code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcp_bindgen.ir.model import Method, Object, Protocol, Ref, Type, Union


@dataclass(frozen=True)
class PythonProtocol(Protocol):
    """A revision with class names for definitions, and tables of all other names.

    Attributes:
        schema_names: Class -> name of its definition in the schema, where the names differ.
        attributes: Class -> member -> attribute.
        stubs: Method -> stub, e.g. `tools/call` -> `call_tool`.
        constants: Error code -> constant.
        meta_names: Key of `_meta` -> name.
        positional: Method -> members of its params that a call takes by position, in order.
    """

    schema_names: Mapping[str, str] = field(default_factory=dict[str, str])
    attributes: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    stubs: Mapping[str, str] = field(default_factory=dict[str, str])
    constants: Mapping[int, str] = field(default_factory=dict[int, str])
    meta_names: Mapping[str, str] = field(default_factory=dict[str, str])
    positional: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def stub(self, method: Method) -> str:
        """Return the name after which the calls and handlers of a method are named."""
        return self.stubs[method.name]

    def class_of(self, type: Type | None) -> str | None:
        """Return the class to which references lead; None if they lead to something else."""
        while isinstance(type, Ref):
            definition = self.definitions[type.name]
            if isinstance(definition.type, Object):
                return definition.name
            type = definition.type
        return None

    def attribute(self, type: Type | None, wire: str) -> str:
        """Return the attribute of a member of a class; of a union, of its first class with this member.

        Raises:
            KeyError: No class of `type` has the member.
        """
        name = self.class_of(type)
        if name is not None:
            return self.attributes[name][wire]
        resolved = None if type is None else self.resolve(type)
        for member in resolved.members if isinstance(resolved, Union) else ():
            try:
                return self.attribute(member, wire)
            except KeyError:
                continue
        raise KeyError(wire)
