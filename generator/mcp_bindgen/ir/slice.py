"""Cut out the part of a protocol that some capabilities need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mcp_bindgen.spec.errors import BadInput, suggestion

from .model import Definition, Method, Protocol, Ref, Union, references


def slice_protocol(protocol: Protocol, only: Iterable[str]) -> Protocol:
    """Restrict `protocol` to the methods that need no capability or one of `only`, and their definitions.

    Args:
        protocol: The whole revision.
        only: Top-level capabilities of either side, e.g. `tools`, `sampling`.

    Raises:
        BadInput: There is no such capability.
    """
    wanted = set(only)
    known = sorted({capability.path.partition(".")[0] for capability in protocol.capabilities})
    for name in sorted(wanted - set(known)):
        raise BadInput(f"MCP {protocol.revision} has no capability {name!r}", fix=suggestion(name, known))
    kept = [method for method in protocol.methods if _is_wanted(method, wanted)]
    dropped = [method for method in protocol.methods if method not in kept]
    own = protocol.reach(_roots(protocol, dropped)).keys() - protocol.reach(_roots(protocol, kept)).keys()
    definitions: dict[str, Definition] = {}
    for name, definition in protocol.definitions.items():
        if name not in own and isinstance(definition.type, Union):
            left = tuple(member for member in definition.type.members if not set(references(member)) & own)
            if left:
                type = left[0] if len(left) == 1 else replace(definition.type, members=left)
                definitions[name] = replace(definition, type=type)
        elif name not in own:
            definitions[name] = definition
    whole = {**protocol.definitions, **definitions}
    needed = replace(protocol, definitions=whole).reach(definitions)
    return replace(
        protocol,
        definitions={name: whole[name] for name in protocol.definitions if name in needed},
        methods=tuple(kept),
        errors=tuple(error for error in protocol.errors if error.definition is None or error.definition in needed),
    )


def _is_wanted(method: Method, wanted: set[str]) -> bool:
    needs = {capability.split(".")[1] for _, capability in method.capabilities}
    return not needs or bool(needs & wanted)


def _roots(protocol: Protocol, methods: Iterable[Method]) -> set[str]:
    """Return the definitions that exist for the sake of `methods`."""
    found: set[str] = set()
    for method in methods:
        found.add(method.definition)
        for type in (method.params, method.result, *method.alternatives):
            found |= {type.name} if isinstance(type, Ref) else set()
        response = f"{method.definition.removesuffix('Request')}ResultResponse"
        if response in protocol.definitions:
            found.add(response)
    return found
