"""Schemas of what callers send, and of what they accept.

A restricted schema allows the values of the original that callers of a profile send. A relaxed schema also allows what
readers of results ignore. Only parts that a value reaches positively are edited; the tests in `not` and `if`, and those
of `contains` and `propertyNames`, stay as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from mcp_bindgen.json_schema.dialects import draft, modern
from mcp_bindgen.json_schema.keywords import APPLIED, IN_PLACE, NAMED, TESTS, children, edited, objects
from mcp_bindgen.json_schema.references import Targets
from mcp_bindgen.runtime.model.json_types import as_array, as_object, is_array, is_object

from .callers import Callers

_LISTS = ("allOf", "anyOf", "oneOf")
_BRANCHES = ("then", "else")
_EVALUATING = frozenset(
    {"properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "required", "dependentSchemas"}
    | {"$ref", "if", *_LISTS, *_BRANCHES}
)
"""Keywords that name members, here or in another schema for the same value."""

_ORIGINAL = "original"
_RESTRICTED = "sent"
_NAMING = frozenset({"properties", "required", "patternProperties", "$ref"})


class Unsupported(ValueError):
    """A schema that cannot be restricted or relaxed; the message is the reason."""


def sent(schema: object, callers: Callers, *, is_call: bool = False) -> Any:
    """Return the schema of the values that callers send, or that a server sends to them.

    Args:
        schema: The original schema.
        callers: Their profile.
        is_call: True for the arguments of a call, which are never a map.

    Raises:
        Unsupported: A reference leads nowhere, or depends on the place of its use, or `contains` names members.
    """
    return _Edit(schema, callers, is_sent=True).of_root(is_call=is_call)


def limited(schema: Any, callers: Callers) -> Any:
    """Return a schema whose values have no number at any depth that the callers do not send; for validation only."""
    if not (limit := callers.max_integer):
        return original(schema)
    below = {"$ref": "#"}
    numbers = {"$id": "urn:numbers", "minimum": -limit, "maximum": limit, "items": below, "additionalProperties": below}
    stated = original(schema)
    return {"allOf": [{"$id": "file:///stated", **stated} if is_object(stated) else stated, numbers]}


def read(schema: Any, callers: Callers) -> Any:
    """Return the schema of the results that callers of a profile accept.

    Raises:
        Unsupported: A reference leads nowhere, or depends on the place of its use.
    """
    if callers.unknown_members == "refused":
        return original(schema)
    return _Edit(schema, callers, is_sent=False).of_root(is_call=False)


def original(schema: object) -> Any:
    """Return a schema in 2020-12, without `$schema` and `dependencies`, whose dynamic references are static.

    Raises:
        Unsupported: A dynamic reference depends on the place of its use.
    """
    found = modern(schema)
    nodes = objects(found)
    anchors = Counter(str(node["$dynamicAnchor"]) for node in nodes if "$dynamicAnchor" in node)
    is_recursive = draft(schema) == 2019

    def state(node: dict[str, Any], found: dict[str, Any]) -> None:
        """Replace a dynamic reference that has one target only, and `dependencies`."""
        if isinstance(reference := found.pop("$dynamicRef", None), str):
            if anchors[reference.rpartition("#")[2]] > 1 or "$ref" in found:
                raise Unsupported("it has dynamic references")
            found["$ref"] = reference
        if isinstance(reference := found.pop("$recursiveRef", None), str) and is_recursive:
            if any("$recursiveAnchor" in one for one in nodes) or "$ref" in found:
                raise Unsupported("it has dynamic references")
            found["$ref"] = reference
        for name, needed in as_object(found.pop("dependencies", None)).items():
            keyword = "dependentRequired" if is_array(needed) else "dependentSchemas"
            found[keyword] = {**as_object(found.get(keyword)), name: needed}

    if any(node.keys() & {"$dynamicRef", "$recursiveRef", "dependencies"} for node in nodes):
        found = edited(found, state)
    return {key: one for key, one in found.items() if key != "$schema"} if is_object(found) else found


class _Edit:
    """Edit of one document: edited parts become definitions, each of them once."""

    def __init__(self, schema: object, callers: Callers, *, is_sent: bool) -> None:
        self.root = original(schema)
        self.targets = Targets(self.root)
        self.callers = callers
        self.is_sent = is_sent
        self.is_closed = callers.members == "named"
        self.definitions: dict[str, Any] = {}
        self.names: dict[str, str] = {}
        self.keeps_original = False

    def of_root(self, *, is_call: bool) -> Any:
        """Return the edited document."""
        found = self.value(self.root, is_call=is_call)
        if not is_object(found):
            return found
        definitions = dict(self.definitions)
        if self.keeps_original:
            definitions[_ORIGINAL] = edited(self.root, self.moved)
        return {**found, "$defs": definitions} if definitions else found

    def value(self, node: object, *, is_call: bool = False) -> Any:
        """Return the edited schema of a whole value."""
        if not self.is_sent:
            return self.in_place(node)
        if not is_object(node):
            if node is not True:
                return node
            node = {}
        if not is_call and (found := self.passed(node)) is not None:
            return found
        found = self.in_place({"type": "object", **node} if is_call else node, is_call=is_call)
        if not is_call and not self.is_bounded(node, set()):
            self.bound(found)
        parts = list(self.same_value(node))
        named = {name for part in parts for name in as_object(part.get("properties"))}
        required = {name for part in parts for name in _texts(part.get("required"))}
        is_record = is_call or named or required or any("patternProperties" in part for part in parts)
        if self.is_closed and is_record and (is_call or found.get("unevaluatedProperties", True) in (True, False)):
            if free := required - named:
                found["allOf"] = [
                    *as_array(found.get("allOf")),
                    {"properties": {name: self.value(True) for name in sorted(free)}},
                ]
            found["unevaluatedProperties"] = False
        return found

    def passed(self, node: dict[str, Any]) -> Any:
        """Return the edited schema of a value whose members all come from one other schema, or None.

        A proof understands it better than one that closes the members of a reference or of alternatives from outside.
        """
        words = node.keys() & _EVALUATING
        (word,) = words if len(words) == 1 else ("",)
        parts = as_array(node.get(word))
        if word == "$ref" and isinstance(node[word], str):
            found: Any = self.reference(node[word])
        elif word in _LISTS and sum(self.may_be_object(one, set()) for one in parts) < 2 - (word == "allOf"):
            found = [self.value(one) for one in parts]
        else:
            return None
        return {**self.in_place({key: one for key, one in node.items() if key != word}), word: found}

    def may_be_object(self, node: object, seen: set[int]) -> bool:
        """Return whether the kinds, constants and alternatives of a schema let objects pass."""
        if not is_object(node) or id(node) in seen:
            return node is not False
        seen.add(id(node))
        if "type" in node:
            return _states("object", node)
        if "const" in node or is_array(node.get("enum")):
            return any(map(is_object, [node["const"]] if "const" in node else node["enum"]))
        if isinstance(node.get("$ref"), str):
            return self.may_be_object(self.target(node["$ref"]), seen)
        unions = [as_array(node.get(keyword)) for keyword in ("anyOf", "oneOf") if node.get(keyword)]
        return all(any(self.may_be_object(one, seen) for one in union) for union in unions)

    def is_bounded(self, node: object, seen: set[int]) -> bool:
        """Return whether numbers are bounded, or excluded, where a schema states kinds and constants."""
        if not is_object(node) or id(node) in seen:
            return node is not True
        seen.add(id(node))
        if node.keys() & {"type", "const", "enum"}:
            return True
        if isinstance(node.get("$ref"), str) and self.is_bounded(self.target(node["$ref"]), seen):
            return True
        unions = [as_array(node.get(keyword)) for keyword in ("anyOf", "oneOf") if node.get(keyword)]
        parts = as_array(node.get("allOf"))
        is_stated = any(all(self.is_bounded(one, seen) for one in union) for union in unions)
        return is_stated or any(self.is_bounded(one, seen) for one in parts)

    def bound(self, found: dict[str, Any]) -> None:
        """Limit numbers to those that the callers send."""
        limit = self.callers.max_integer
        for keyword, bound, tighter in (("minimum", -limit, max), ("maximum", limit, min)) if limit else ():
            stated = found.get(keyword, bound)
            found[keyword] = tighter(stated, bound) if isinstance(stated, int | float) else bound

    def same_value(self, node: object) -> Iterator[dict[str, Any]]:
        """Yield the schemas that apply to the same value, the given one first; each once."""
        pending, seen = [node], set[int]()
        while pending:
            one = pending.pop()
            if not is_object(one) or id(one) in seen:
                continue
            seen.add(id(one))
            yield one
            pending += [part for keyword, _, part in children(one) if keyword in APPLIED & IN_PLACE]
            if isinstance(one.get("$ref"), str):
                pending.append(self.target(one["$ref"]))

    def in_place(self, node: object, *, is_call: bool = False) -> Any:
        """Return an edited schema that applies to a value beside others."""
        if not is_object(node):
            return node
        if self.is_sent and any(_NAMING & one.keys() for one in objects(node.get("contains"))):
            raise Unsupported("`contains` names members of items")  # which `items` would refuse
        found = {
            keyword: self.part(keyword, part, is_call=is_call)
            for keyword, part in node.items()
            if keyword not in ("$defs", "definitions", "$id", "$anchor", "$dynamicAnchor")
        }
        rest = node.get("additionalProperties")
        has_members = bool(as_object(node.get("properties")))
        if not self.is_sent:
            for keyword in ("additionalProperties", "unevaluatedProperties"):
                if node.get(keyword) is False:
                    del found[keyword]
            if "oneOf" in found:  # a relaxed alternative may accept what another one accepts
                alternatives = {"anyOf": found.pop("oneOf")}
                found["allOf"] = [*as_array(found.get("allOf")), alternatives]
        elif not self.is_closed:
            pass
        elif is_call:
            if rest is not None and rest is not False:
                del found["additionalProperties"]
        elif has_members and (rest is True or rest == {}):
            del found["additionalProperties"]
        elif _is_map(node):
            found.setdefault("additionalProperties", True)
        if self.is_sent and _states("integer", node) | _states("number", node):
            self.bound(found)
        return found

    def part(self, keyword: str, part: object, *, is_call: bool) -> Any:
        """Return the edited value of a keyword."""
        if keyword == "$ref" and isinstance(part, str):
            return self.reference(part, is_beside=True, is_call=is_call)
        if keyword in TESTS:
            return edited(part, self.moved)
        if keyword not in APPLIED:
            return deepcopy(part)

        def changed(node: object) -> Any:
            return self.in_place(node, is_call=is_call) if keyword in IN_PLACE else self.value(node)

        if keyword in NAMED:
            return {name: changed(one) for name, one in as_object(part).items()}
        if is_array(part):
            return [changed(one) for one in part]
        is_free = keyword not in IN_PLACE and (part is True or part == {})
        return is_free or changed(part)

    def moved(self, node: dict[str, Any], found: dict[str, Any]) -> None:
        """Let the references of a test lead to the original document, which becomes a definition."""
        if isinstance(reference := node.get("$ref"), str):
            self.keeps_original = True
            if not (reference == "#" or reference.startswith("#/")):
                raise Unsupported("a test refers to an id or an anchor")
            found["$ref"] = f"#/$defs/{_ORIGINAL}{reference[1:]}"
        for keyword in ("$id", "$anchor", "$dynamicAnchor"):
            found.pop(keyword, None)

    def reference(self, reference: str, *, is_beside: bool = False, is_call: bool = False) -> str:
        """Return a reference to the edited target of another one; `is_beside` for one beside other schemas."""
        key = f"{reference} {is_beside} {is_call}"
        if key not in self.names:
            self.names[key] = name = f"{_RESTRICTED}{len(self.names)}"
            target = self.target(reference)
            self.definitions[name] = self.in_place(target, is_call=is_call) if is_beside else self.value(target)
        return f"#/$defs/{self.names[key]}"

    def target(self, reference: str) -> Any:
        """Return the target of a reference."""
        targets = {id(one): one for one in self.targets.all(reference)}
        if len(targets) > 1:
            raise Unsupported(f"the reference {reference!r} may have several targets")
        found = next(iter(targets.values()), None)
        if not (is_object(found) or isinstance(found, bool)):
            raise Unsupported(f"the reference {reference!r} leads nowhere")
        return found


def _states(kind: str, node: dict[str, Any]) -> bool:
    kinds = node.get("type")
    return kind in (kinds if is_array(kinds) else [kinds])


def _is_map(node: dict[str, Any]) -> bool:
    """Return whether a schema alone says that a value is an object with any members."""
    naming = {"properties", "required", "$ref", "patternProperties", "dependentSchemas", *_LISTS, *_BRANCHES}
    return _states("object", node) and naming.isdisjoint(key for key, one in node.items() if one != [] and one != {})


def _texts(value: object) -> list[str]:
    return [one for one in as_array(value) if isinstance(one, str)]
