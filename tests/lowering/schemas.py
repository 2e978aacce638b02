"""Random input schemas: every keyword that lowering knows, in the combinations that tools use and in odd ones."""

from __future__ import annotations

import random
from typing import Any

from tests.harness.json_instances import NAMES

PATTERNS = ("^a", "^[a-z-]+$", "b$", "^x-", "(?=a)a")
DRAFT_07 = "http://json-schema.org/draft-07/schema#"


class Schemas:
    """Random schemas.

    Args:
        rng: The source of choices.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def tool(self) -> dict[str, Any]:
        """Return a tool with a random input schema."""
        rng = self._rng
        self._is_old = rng.random() < 0.15
        self._definitions = rng.sample(["node", "leaf", "a/b"], rng.choice([0, 0, 1, 2]))
        schema = self._object(0)
        if rng.random() < 0.2:
            schema |= self._combined(1)
        if self._definitions:
            schema["definitions" if self._is_old else "$defs"] = {
                name: self._schema(2, referable=index > 0) for index, name in enumerate(self._definitions)
            }
        if self._is_old:
            schema["$schema"] = DRAFT_07
        return {"name": "tool", "inputSchema": schema}

    def _schema(self, depth: int, *, referable: bool = True) -> Any:
        rng = self._rng
        kind = rng.random()
        if kind < 0.04:
            return rng.choice([True, {}, {"description": "anything"}, False])
        if kind < 0.14 and self._definitions and referable:
            name = rng.choice(self._definitions).replace("/", "~1")
            found: dict[str, Any] = {"$ref": f"#/{'definitions' if self._is_old else '$defs'}/{name}"}
            return found if rng.random() < 0.8 or self._is_old else found | self._scalar()
        if kind < 0.26 and depth < 4:
            own = {} if rng.random() < 0.6 else self._plain(depth + 1)
            return own | self._combined(depth + 1)
        return self._plain(depth)

    def _plain(self, depth: int) -> dict[str, Any]:
        rng = self._rng
        kind = rng.random()
        is_scalar = kind < 0.55 or depth > 3
        found = self._scalar() if is_scalar else self._object(depth) if kind < 0.8 else self._array(depth)
        if found.get("type") in ("string", "integer", "object", "array") and rng.random() < 0.15:
            found["type"] = [found["type"], "null"]
        if rng.random() < 0.1:
            found.pop("type", None)
        if rng.random() < 0.15:
            found["default"] = rng.choice([None, 1, "a"])
        return found

    def _scalar(self) -> dict[str, Any]:
        rng = self._rng
        kind = rng.randrange(8)
        if kind < 2:
            return {"type": "string"} | self._some(
                minLength=rng.choice([0, 1, 2]), maxLength=rng.choice([1, 3, 30]), pattern=rng.choice(PATTERNS),
                format=rng.choice(["date", "email", "uri", "uuid", "int32", "ipv4", "date-time"]),
            )  # fmt: skip
        if kind < 4:
            return {"type": rng.choice(["integer", "number"])} | self._some(
                minimum=rng.choice([0, 1, -1.5]), maximum=rng.choice([3, 10, 100]),
                exclusiveMinimum=rng.choice([0, 0.5]),
                exclusiveMaximum=rng.choice([5, 11]), multipleOf=rng.choice([1, 2, 0.5]),
            )  # fmt: skip
        if kind == 4:
            every = ["a", "b", "", "null", 1, 2, 1.5, True, False, None, [1], {"a": 1}]
            return {"enum": rng.sample(every, rng.choice([1, 2, 3]))}
        if kind == 5:
            return {"const": rng.choice(["a", "b", 1, None, True, {}, ["a", 2]])}
        if kind == 6:
            return {"type": "string", "enum": rng.sample(["a", "b", "c", "A", ""], 2)}
        return {"type": rng.choice(["boolean", "null", ["string", "number"], ["integer", "null"]])}

    def _some(self, **limits: Any) -> dict[str, Any]:
        return {word: value for word, value in limits.items() if self._rng.random() < 0.2}

    def _array(self, depth: int) -> dict[str, Any]:
        rng = self._rng
        found: dict[str, Any] = {"type": "array"}
        if rng.random() < 0.85:
            found["items"] = self._schema(depth + 1)
        if rng.random() < 0.2:
            prefix = [self._schema(depth + 1) for _ in range(rng.choice([1, 2]))]
            if self._is_old:
                found |= {"items": prefix, "additionalItems": rng.choice([False, True])}
            else:
                found |= {"prefixItems": prefix, "items": rng.choice([False, True, {"type": "string"}])}
            found |= self._some(minItems=len(prefix), maxItems=len(prefix))
        limits = self._some(minItems=rng.choice([0, 1, 2]), maxItems=rng.choice([1, 2, 5]), uniqueItems=True)
        return found | limits | ({"contains": self._scalar()} if rng.random() < 0.05 else {})

    def _object(self, depth: int) -> dict[str, Any]:
        rng = self._rng
        names = rng.sample(NAMES[:6], rng.choice([0, 1, 2, 2, 3]))
        found: dict[str, Any] = {"type": "object"}
        if names or rng.random() < 0.5:
            found["properties"] = {name: self._schema(depth + 1) for name in names}
        required = [name for name in NAMES[:5] if rng.random() < (0.4 if name in names else 0.03)]
        if required:
            found["required"] = required
        if rng.random() < 0.5:
            found["additionalProperties"] = rng.choice([False, False, False, True, self._schema(depth + 1)])
        if rng.random() < 0.08:
            found["patternProperties"] = {rng.choice(PATTERNS): self._schema(depth + 1)}
        if rng.random() < 0.06:
            found["propertyNames"] = {"pattern": rng.choice(PATTERNS)}
        if rng.random() < 0.06:
            found[rng.choice(["minProperties", "maxProperties"])] = rng.choice([1, 2])
        if rng.random() < 0.08 and not self._is_old:
            found["dependentRequired"] = {rng.choice(NAMES): [rng.choice(NAMES)]}
        if rng.random() < 0.05 and not self._is_old:
            found["unevaluatedProperties"] = rng.choice([False, {"type": "string"}])
        return found

    def _combined(self, depth: int) -> dict[str, Any]:
        rng = self._rng
        kind = rng.randrange(8)
        parts = [self._schema(depth) for _ in range(rng.choice([1, 2, 2, 3]))]
        if kind < 5:
            return {("anyOf", "anyOf", "anyOf", "oneOf", "allOf")[kind]: parts}
        if kind == 5:
            tagged = [{"type": "object", "properties": {"kind": {"const": name}, name: self._schema(depth + 1)},
                       "required": ["kind"]} for name in rng.sample(["a", "b", "c"], 2)]  # fmt: skip
            return {rng.choice(["oneOf", "anyOf"]): tagged}
        if kind == 6:
            fixed = [{"required": ["a"]}, {"enum": ["a", 1]}, {"required": ["a", "b"]}]
            return {"not": rng.choice([*fixed, self._scalar()])}
        test = {"properties": {"kind": {"const": "a"}}} | rng.choice([{}, {"required": ["kind"]}])
        found = {"if": test, "then": rng.choice([{"required": ["b"]}, self._schema(depth)])}
        return found | self._some(**{"else": self._schema(depth)})
