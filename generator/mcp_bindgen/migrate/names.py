"""New names of the classes of the old bindings, inline objects included."""

from __future__ import annotations

from mcp_bindgen.diff.location import steps
from mcp_bindgen.diff.match import Matches
from mcp_bindgen.protocol.model import Protocol, Ref, Type


def new_names(old: Protocol, new: Protocol, matches: Matches) -> dict[str, str]:
    """Return old name -> new name of every definition that still exists.

    Renamed definitions are followed. An inline object has no name in the schema: its class keeps its name if it can,
    and else becomes the class in the same place.
    """
    found = dict(matches.new)
    for name in old.definitions:
        if name in new.definitions and name not in matches.redefined and name not in found:
            found[name] = name
    pending = [(old.definitions[a].type, new.definitions[b].type) for a, b in found.items()]
    while pending:
        for one, other in _below(*pending.pop()):
            if isinstance(one, Ref) and isinstance(other, Ref) and one.name not in found:
                became = other.name if new.object_of(other) is not None else None
                if old.definitions[one.name].hoisted and became is not None:
                    found[one.name] = became
                    pending.append((old.definitions[one.name].type, new.definitions[became].type))
            elif not isinstance(one, Ref) and not isinstance(other, Ref):
                pending.append((one, other))
    return found


def _below(old: Type, new: Type) -> list[tuple[Type, Type]]:
    """Return pairs of types in the same place of both."""
    theirs = dict(steps(new))
    return [(type, theirs[step]) for step, type in steps(old) if step in theirs and step[0] != "form"]
