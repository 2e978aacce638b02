"""What a name of the old bindings is called in the new ones, inline objects included."""

from __future__ import annotations

from mcp_bindgen.protocol.model import Object, Protocol, Ref, Type

from ..location import steps
from ..match import Matches


def new_names(old: Protocol, new: Protocol, matches: Matches) -> dict[str, str]:
    """Old name -> new name, for everything that still exists.

    A definition is followed through its renames. An inline object has no name in the schema, so its class keeps the
    one that it has if it can, and else becomes what stands in its place.
    """
    found = dict(matches.new)
    for name in old.definitions:
        if name in new.definitions and name not in matches.redefined and name not in found:
            found[name] = name
    pending = [(old.definitions[a].type, new.definitions[b].type) for a, b in found.items()]
    while pending:
        for one, other in _below(*pending.pop()):
            if isinstance(one, Ref) and isinstance(other, Ref) and one.name not in found:
                became = other.name if isinstance(new.resolve(other), Object) else None
                if old.definitions[one.name].hoisted and became is not None:
                    found[one.name] = became
                    pending.append((old.definitions[one.name].type, new.definitions[became].type))
            elif not isinstance(one, Ref) and not isinstance(other, Ref):
                pending.append((one, other))
    return found


def _below(old: Type, new: Type) -> list[tuple[Type, Type]]:
    """Return what stands in the same place in both."""
    theirs = dict(steps(new))
    return [(type, theirs[step]) for step, type in steps(old) if step in theirs and step[0] != "form"]
