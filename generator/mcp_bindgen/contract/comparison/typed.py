"""Compare the types of one entry in two contracts with the diff of types, as two small protocols."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mcp_bindgen.diff import compare
from mcp_bindgen.diff.finding import Finding, Plane
from mcp_bindgen.protocol.model import (
    Definition,
    Field,
    Method,
    Object,
    Protocol,
    Ref,
    Type,
    map_parts,
    references,
)

SENT = "arguments"
"""What a client sends, in subjects."""

ANSWERED = "result"
"""What a server answers, in subjects."""

_CALL = "call"


def type_findings(old: Protocol, new: Protocol, roots: Mapping[str, Sequence[str]]) -> list[Finding]:
    """Find what differs on the wire between the types of an entry in two contracts.

    Args:
        old: The types of the old contract.
        new: The types of the new one.
        roots: `SENT` or `ANSWERED` -> the old and the new name of the definition.
    """
    protocols = [
        _entry(types, {root: names[side] for root, names in roots.items()}) for side, types in ((0, old), (1, new))
    ]
    found = compare(*protocols).findings
    return [finding for finding in found if finding.plane is Plane.WIRE]


def _entry(types: Protocol, roots: Mapping[str, str]) -> Protocol:
    """Return a protocol with one request, whose arguments and result are the definitions `roots`."""
    names = {name: root for root, name in roots.items()}
    closure = list(types.reach(roots.values()))
    used = Counter(name for known in closure for name in references(types.definitions[known].type))
    definitions: dict[str, Definition] = {}
    for known in closure:
        name = names.get(known, known)
        shared = name in roots or used[known] > 1 or known in types.reach(references(types.definitions[known].type))
        definition = types.definitions[known]
        definitions[name] = replace(definition, name=name, type=_renamed(definition.type, names), hoisted=not shared)
    sent = tuple(Field(root, root, Ref(root), required=True) for root in roots if root == SENT)
    definitions[_CALL] = Definition(_CALL, Object(sent))
    result = Ref(ANSWERED) if ANSWERED in roots else None
    method = Method(_CALL, _CALL, _CALL, "request", ("client",), result=result)
    return Protocol(types.revision, types.era, types.digest, dict(sorted(definitions.items())), (method,))


def _renamed(type: Type, names: Mapping[str, str]) -> Type:
    """Return `type` with other names for some definitions."""
    if isinstance(type, Ref):
        return Ref(names.get(type.name, type.name))
    return map_parts(type, lambda part: _renamed(part, names))


def steps(subject: str) -> Iterator[str]:
    """Return the root of a finding's subject and then the place in it: `arguments`, `.options.depth`."""
    end = next((index for index, char in enumerate(subject) if char in ".[{|"), len(subject))
    yield subject[:end]
    yield _formless(subject[end:])


def _formless(place: str) -> str:
    """Return a place without the forms of unions in it: the schemas on the other side do not name them."""
    kept: list[str] = []
    skipping = False
    for char in place:
        skipping = char == "|" or (skipping and char not in ".[{")
        if not skipping:
            kept.append(char)
    return "".join(kept)
