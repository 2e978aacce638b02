"""Validation of JSON values against the schemas of a contract, with a JSON Schema validator and limits on its effort.

A schema without `$schema` is one of JSON Schema 2020-12, as the protocol demands. `format` is an annotation. Nothing is
fetched: a reference that leaves the schema is an error.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, TypeAdapter
from pydantic import ValidationError as WrongType
from pydantic_core import SchemaValidator, core_schema, to_json

from mcp_bindgen.json_schema.keywords import KEYWORDS, REFERENCES, Place, children
from mcp_bindgen.json_schema.pointer import join, values_at
from mcp_bindgen.json_schema.references import Targets
from mcp_bindgen.runtime.lazy import require
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.json_types import as_array, as_object, is_array, is_object
from mcp_bindgen.runtime.model.validation import problems
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.methods import Method
from mcp_bindgen.runtime.protocol.routing import did_you_mean
from mcp_bindgen.runtime.protocol.transport import MAX_MESSAGE

from .errors import InvalidResult, UnexpectedResult
from .values import ABSENT, MOST_STEPS, TypeForm

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError
    from jsonschema_rs import Validator as CompiledSchema


ANY: Final = object()
"""A value that has each member and item that a schema names, once."""


class Complexity:
    """Number of schemas that a validator without memory applies to the parts of a value.

    A schema that contains itself counts once in a place. If a reference may have several targets, all of them count.

    Args:
        schema: A JSON Schema of any dialect.
    """

    def __init__(self, schema: object) -> None:
        self._schema = schema
        self._targets = Targets(schema)

    def resolved(self, schema: object) -> Mapping[str, object]:
        """Return a schema, or the target of its reference; an empty object for a boolean."""
        found = as_object(schema)
        return as_object(self._targets.find(found["$ref"])) if "$ref" in found else found

    def exceeds(self, most: int, value: object = ANY) -> bool:
        """Return whether validation takes more than `most` steps, for `value` or in general."""
        return self.steps(most, value) > most

    def steps(self, most: int, value: object = ANY) -> int:
        """Return the number of steps for `value` or in general; any number above `most` means only "more"."""
        try:
            return self._count(self._schema, value, {}, most)
        except RecursionError:
            return most + 1

    def _count(self, schema: object, value: object, known: dict[tuple[int, int], int], most: int) -> int:
        if not is_object(schema):
            return 1
        pair = id(schema), id(value)
        if pair not in known:
            known[pair] = 1
            choices = as_array(schema.get("enum"))  # a validator compares them one by one, unless all are scalars
            found = 1 + len(choices) * any(is_object(choice) or is_array(choice) for choice in choices)
            for part, below in self._below(schema, value):
                found += self._count(part, below, known, most)
                if found > most:  # the rest would not change the result
                    break
            known[pair] = found
        return known[pair]

    def _below(self, schema: Mapping[str, object], value: object) -> Iterator[tuple[object, object]]:
        """Yield the schemas that a schema applies, each with its value: the same value, then its members or items."""
        for keyword in REFERENCES:
            yield from ((target, value) for target in self._targets.all(schema.get(keyword)))
        for keyword, key, part in children(schema):
            place = KEYWORDS[keyword].place
            if place is Place.SAME:
                yield part, value
            elif key is not None or is_object(part):  # a boolean for all members or items takes no step
                if place is Place.MEMBERS and (value is ANY or is_object(value)):
                    members = (
                        dict.fromkeys(as_object(schema.get("properties")), ANY) if value is ANY else as_object(value)
                    )
                    yield from ((part, one) for one in _members(keyword, key, members, value is ANY))
                elif place is Place.ITEMS and (value is ANY or is_array(value)):
                    items = as_array(value) if is_array(value) else [ANY]
                    chosen = items if key is None or value is ANY else items[int(key) : int(key) + 1]
                    yield from ((part, item) for item in chosen)


def _members(keyword: str, name: object, members: Mapping[str, object], is_any: bool) -> Iterable[object]:
    """Return the members to which a subschema applies, or their names."""
    if keyword == "properties":
        return [members[str(name)]] if name in members else []
    if keyword == "propertyNames":
        return members
    return [ANY] if is_any else members.values()


def is_larger(value: object, most: float) -> bool:
    """Return whether a JSON value has more than `most` parts: itself, and all members and items at any depth."""
    parts = [value]
    for part in parts:  # grows in the loop
        if isinstance(part, dict):
            parts += part.values()
        elif isinstance(part, list):
            parts += part
        if len(parts) > most:
            return True
    return False


MAX_PROBLEMS = 10
"""The maximum of problems that are reported."""

_JSON_TYPES: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    list: "array",
    dict: "object",
    type(None): "null",
}
_MEMBERS = ("default", "members")  # of a core schema, where members of enums are values of Python
_MAX_PROBLEM_CHARACTERS = 200
_MAX_STEP_CHARACTERS = 60  # of the name of a member in a path
_STEPS_FACTOR = 30  # the limit for a value, as a multiple of that for a schema: to count a step takes up to 1 us
_PARTS_FACTOR = 3000  # the same for values whose steps are not counted: the validator takes about 10 ns for a part
_UNIONS = ("anyOf", "oneOf")
_MAX_BACKTRACKS = 10_000  # of a pattern on a string; a million, the library's limit, take 24 ms
_MAX_EXPLAINED_STEPS = 10_000  # an error costs up to 10 us at each step of validation


@dataclass(eq=False)
class Validator:
    """A schema that is compiled on first use.

    Attributes:
        schema: The schema, verbatim.
        place: Its place in the contract, for messages.
        most_steps: Maximum of steps of validation for a value (see `Complexity`).
        validate_formats: Whether `format` is asserted; `None` for the rule of the schema's dialect.

    Raises:
        ImportError: The validator is not installed.
    """

    schema: dict[str, Any] | bool
    place: str
    most_steps: int = MOST_STEPS
    validate_formats: bool | None = False

    def __post_init__(self) -> None:
        require("serving the tools of a contract", "jsonschema_rs", extra="app")

    @cached_property
    def _complexity(self) -> Complexity:
        return Complexity(self.schema)

    @cached_property
    def _compiled(self) -> tuple[CompiledSchema, float]:
        """The validator, and the number of parts up to which a value is validated without counting its steps."""
        import jsonschema_rs

        steps = self._complexity.steps(self.most_steps)
        if steps > self.most_steps:
            raise InvalidResult(f"{self.place} is too complex: a value can take more than {self.most_steps} steps")
        try:
            validator = jsonschema_rs.validator_for(
                self.schema,
                validate_formats=self.validate_formats,
                mask="the value",
                retriever=_refuse,
                pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_MAX_BACKTRACKS),
            )
        except ValueError as error:
            reason = str(error).partition("\n")[0]
            raise InvalidResult(f"{self.place} is not a usable schema: {_cut(reason)}") from None
        return validator, _PARTS_FACTOR * self.most_steps / steps

    def problems(self, value: object, root: str) -> list[dict[str, str]]:
        """Return the problems of a JSON value, each with `path` and `problem`; values are not repeated in them.

        Args:
            value: The value.
            root: The path of the value.

        Raises:
            InvalidResult: The schema is unusable.
        """
        compiled, max_parts = self._compiled
        if (
            2 * max_parts < MAX_MESSAGE
            and is_larger(value, max_parts)
            and self._complexity.exceeds(_STEPS_FACTOR * self.most_steps, value)
        ):
            return [{"path": root, "problem": "is too large for the schema: validation would take too many steps"}]
        if compiled.is_valid(value):
            return []
        if self._complexity.exceeds(min(_MAX_EXPLAINED_STEPS, self.most_steps), value):
            return [{"path": root, "problem": "does not fit the schema; it is too large to locate the problem"}]
        errors = list(islice(self._causes(compiled.iter_errors(value)), MAX_PROBLEMS + 1))
        found: list[dict[str, str]] = []
        for error in errors[:MAX_PROBLEMS]:
            path = ".".join([root, *(_cut(str(step), _MAX_STEP_CHARACTERS) for step in error.instance_path)])
            found.append({"path": path, "problem": _cut(self._explained(error))})
        return found + [{"path": root, "problem": "there is more"}] * (len(errors) > MAX_PROBLEMS)

    def check(self, result: Any, invalid: Callable[[str], InvalidResult]) -> None:
        """Raise what `invalid` returns unless the structured content of a final result of a tool fits the schema."""
        if is_object(result):
            structured = result.get("structuredContent", ABSENT)
        elif getattr(result, "content", None) is None or result.is_error:
            return
        else:
            structured = structured_content(result)
        if structured is ABSENT:
            raise invalid("returned no structured content")
        for problem in self.problems(structured, "structuredContent"):
            raise invalid(f"returned {problem['path']}: {problem['problem']}")

    def _explained(self, error: ValidationError) -> str:
        """Return a line about an error; it suggests names for unknown members, and lists the types that fit."""
        kind: Any = error.kind
        if kind.name == "required":
            return f"{_cut(kind.property, _MAX_STEP_CHARACTERS)!r} is missing"
        if kind.name == "type":
            return _wanted(kind.types, error.instance)
        if kind.name == "additionalProperties":
            schema = {} if error.instance_path else self.schema
            known: dict[str, Any] = schema.get("properties", {}) if is_object(schema) else {}
            unknown = ((_cut(name, _MAX_STEP_CHARACTERS), did_you_mean(name, known)) for name in kind.unexpected)
            return "; ".join(f"{name!r} is unknown{hint}" for name, hint in unknown)
        if kind.name not in _UNIONS:
            return error.message
        tag, values = self._tag(error)
        if values:
            return f"expected tags: {', '.join(map(repr, values))} (the member {tag!r})"
        depth = len(error.instance_path)
        types = [[name for one in branch if _is_type(one, depth) for name in one.kind.types] for branch in kind.context]
        if types and all(types):
            return _wanted([name for names in types for name in names], error.instance)
        reasons: list[str] = []
        for one, branch, other in zip(self._alternatives(error), kind.context, types, strict=False):
            if branch and not other:
                place = "".join(f"{step}: " for step in branch[0].instance_path[depth:])
                reasons.append(f"{_name(one)} ({place}{self._explained(branch[0])})")
        return f"fits none of these: {', '.join(reasons)}" if reasons else error.message

    def _causes(self, errors: Iterable[ValidationError]) -> Iterator[ValidationError]:
        """Yield the most specific errors: those of a single alternative, if all other alternatives are ruled out."""
        for error in errors:
            kind: Any = error.kind
            branches: list[list[ValidationError]] = kind.context if kind.name in _UNIONS else []
            depth, tag = len(error.instance_path), self._tag(error)[0]
            chosen = [one for one in branches if one and not any(_is_another(cause, depth, tag) for cause in one)]
            yield from self._causes(chosen[0]) if len(chosen) == 1 else [error]

    def _alternatives(self, error: ValidationError) -> Sequence[object]:
        """Return the alternatives of the union that a value does not fit; none for another error."""
        found = values_at(self.schema, join("", *error.schema_path)) if error.kind.name in _UNIONS else []
        return as_array(found[0]) if found else ()

    def _tag(self, error: ValidationError) -> tuple[str | None, list[object]]:
        """Return the member by which the alternatives for an object differ, and its values; None if there is none."""
        alternatives = self._alternatives(error) if is_object(error.instance) else ()
        members = [as_object(one.get("properties")) for one in self._objects(alternatives, set())]
        for name in members[0] if len(members) > 1 else ():
            parts = [self._complexity.resolved(one.get(name)) for one in members]
            found = [[one["const"]] if "const" in one else as_array(one.get("enum")) for one in parts]
            values = [value for values in found for value in values]
            if all(found) and len(set(map(repr, values))) == len(values):
                return name, values
        return None, []

    def _objects(self, alternatives: Iterable[object], seen: set[int]) -> Iterator[Mapping[str, object]]:
        """Yield the schemas of objects among alternatives, and those of alternatives that are unions, once each."""
        for one in map(self._complexity.resolved, alternatives):
            if id(one) not in seen:
                seen.add(id(one))
                yield from self._objects([*as_array(one.get("anyOf")), *as_array(one.get("oneOf"))], seen)
                if "properties" in one or one.get("type") == "object":
                    yield one


def _name(schema: object) -> str:
    """Return the name of an alternative of a union, or else its type."""
    found = as_object(schema)
    return str(found.get("title") or str(found.get("$ref", "")).rpartition("/")[2] or found.get("type") or "another")


@lru_cache(1000)
def _of_pattern(pattern: str) -> Validator:
    return Validator({"pattern": pattern}, "")


def matches(pattern: str, text: str) -> bool:
    """Return whether a pattern of ECMA-262 matches a part of a text; False if it is no pattern."""
    with suppress(InvalidResult):
        return not _of_pattern(pattern).problems(text, "")
    return False


def _wanted(types: Iterable[str], value: object) -> str:
    """Return the problem of a value of another JSON type."""
    return f"wanted {' or '.join(dict.fromkeys(types))}, got {_JSON_TYPES.get(type(value), 'number')}"


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is outside of the schema, and nothing is fetched")


def _is_another(error: ValidationError, depth: int, tag: object) -> bool:
    """Return whether an alternative is for another type, or for objects with another constant or tag."""
    below = error.instance_path[depth:]
    kind: Any = error.kind
    if kind.name in _UNIONS and not below:
        return all(any(_is_another(one, depth, tag) for one in branch) for branch in kind.context)
    is_for_other_values = kind.name == "const" and len(below) <= 1
    return is_for_other_values or below == [tag] or _is_type(error, depth)


def _is_type(error: ValidationError, depth: int) -> bool:
    """Return whether an alternative is for another type."""
    return error.kind.name == "type" and len(error.instance_path) == depth


def _cut(text: str, longest: int = _MAX_PROBLEM_CHARACTERS) -> str:
    return text if len(text) <= longest else f"{text[:longest]}..."


@cache
def adapter(kind: TypeForm) -> TypeAdapter[Any]:
    """Return the validator and serialiser of a type; a `Literal` of an enum's members takes their values."""
    found = TypeAdapter[Any](kind)
    by_value = _by_value(found.core_schema)
    if by_value != found.core_schema:  # pydantic publishes the values, but takes the members only
        found.validator = SchemaValidator(by_value, _use_prebuilt=False)  # else models keep their own validators
    return found


def _by_value(node: Any) -> Any:
    """Return a part of a core schema in which literals and tags are values of enums in place of members."""
    if type(node) in (list, tuple):
        return type(node)(map(_by_value, node))
    if not is_object(node):
        return node.value if isinstance(node, Enum) else node
    found: Any = {_by_value(key): one if key in _MEMBERS else _by_value(one) for key, one in node.items()}
    names = node.get("expected", ()) if node.get("type") == "literal" else ()
    members = {one.value: one for one in names if isinstance(one, Enum)}
    after = core_schema.no_info_after_validator_function(lambda value: members.get(value, value), found)
    return after if members else found


_EXACT = frozenset({"bool", "default", "dict", "float", "int", "list", "none", "nullable", "str"})
"""Core schemas whose values, if they are strictly valid, the serialiser takes without a warning."""


@cache
def _is_exact(kind: TypeForm) -> bool:
    """Return True if strict validation finds each value of another type, as it does in built-in types."""

    def is_exact(node: Mapping[str, Any]) -> bool:
        parts = (node[name] for name in ("schema", "items_schema", "keys_schema", "values_schema") if name in node)
        return node["type"] in _EXACT and "serialization" not in node and all(map(is_exact, parts))

    return is_exact(adapter(kind).core_schema)


def written(kind: TypeForm, value: object) -> str:
    """Return the JSON text of a value of a type; raises `ValueError` for a value of another type."""
    found = adapter(kind)
    if _is_exact(kind) and found.validator.isinstance_python(value, strict=True):
        return jsonrpc.write_result(value, found.serializer).decode()  # errors for warnings are slow
    return jsonrpc.write_result(value, found.serializer, by_alias=True, warnings="error").decode()


def typed(kind: TypeForm, value: object, root: str, error: Callable[[list[dict[str, str]]], Exception]) -> Any:
    """Return a JSON value in a type.

    Args:
        kind: The type.
        value: The JSON value.
        root: The path of the value, at which the paths of problems begin.
        error: Makes the error to raise from the problems, each with `path` and `problem`.
    """
    data = to_json(value)
    try:
        found = adapter(kind).validator.validate_json(data)
    except WrongType as wrong:
        raise error(problems(wrong, root, data)) from None
    if _may_merge(kind):
        merged = list(_merged(value, found, root))
        if merged:
            raise error([{"path": path, "problem": "has two values that are the same to the tool"} for path in merged])
    return found


@cache
def _may_merge(kind: TypeForm) -> bool:
    """Return whether Python may merge JSON values: items of a set, or members whose names are not texts."""

    def merges(node: object) -> bool:
        if is_array(node):
            return any(map(merges, node))
        if not is_object(node):
            return False
        names = node.get("keys_schema", {}).get("type")
        is_merging = node.get("type") in ("set", "frozenset") or names not in ("str", "any", None)
        return is_merging or any(map(merges, node.values()))

    return merges(adapter(kind).core_schema)


def _merged(wire: object, found: Any, path: str) -> Iterator[str]:
    """Yield the paths of the arrays and objects that have fewer items or members in Python."""
    if getattr(found, "__pydantic_root_model__", False):
        found = found.root
    if isinstance(found, set | frozenset):
        if is_array(wire) and _size(wire) != _size(found):  # pyright: ignore[reportUnknownArgumentType]
            yield path
    elif is_array(wire) and hasattr(found, "__iter__"):
        for index, (one, item) in enumerate(zip(wire, found, strict=False)):
            yield from _merged(one, item, f"{path}.{index}")
    elif is_object(wire):
        members: dict[Any, object] = _wire_members(found)
        if any(not isinstance(name, str) for name in members):
            if len(wire) != len(members):
                yield path
            members = dict(zip(wire, members.values(), strict=False))
        for name in wire.keys() & members.keys():
            yield from _merged(wire[name], members[name], f"{path}.{name}")


def _wire_members(found: object) -> dict[Any, object]:
    """Return the members of an object by each wire name that they may have."""
    if is_object(found):
        return found
    members: dict[Any, object] = dict(getattr(found, "__dict__", {}))
    fields: dict[str, Any] = getattr(type(found), "__pydantic_fields__", {})
    for name, field in fields.items():
        aliases = getattr(field.validation_alias, "choices", [field.validation_alias])
        members |= dict.fromkeys((one for one in aliases if isinstance(one, str)), getattr(found, name))
    return members


def _size(value: object) -> int:
    """Return the number of values in an array or a set, including nested arrays."""
    return 1 + sum(map(_size, value)) if isinstance(value, list | tuple | set | frozenset) else 1  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def structured_content(result: BaseModel) -> Any:
    """Return the structured content of a tool's result of any revision in wire form; `ABSENT` if it has none."""
    members = {"structured_content", "structuredContent"}  # the latter where the revision does not define it
    return result.model_dump(include=members).get("structuredContent", ABSENT)


class OutputSchemas:
    """Validates results against the output schemas that the server listed (MCP, "Tools": Output Schema).

    Assign it to a client: `client.checks = OutputSchemas()`.

    Args:
        limit: Maximum of schemas; the schema that was listed the longest ago is dropped first.

    Raises:
        ImportError: `mcp-bindgen[app]` is not installed.
    """

    def __init__(self, limit: int = 1000) -> None:
        require("validating the results of tools", "jsonschema_rs", extra="app")
        self._limit = limit
        self._validators: OrderedDict[str, Validator] = OrderedDict()

    def check(self, method: Method, params: Any, answer: Any) -> None:
        """Keep the schemas of a list of tools, or check the result of a tool.

        An unusable schema is logged, and results of its tool are not checked any more.

        Raises:
            UnexpectedResult: The structured content does not fit the schema, or is missing.
        """
        if method.name == "tools/list":
            for tool in answer.tools:
                self._keep(tool.name, tool.model_dump(include={"output_schema"}).get("outputSchema"))
        elif method.name != "tools/call" or params.name not in self._validators:
            return
        elif hasattr(answer, "content") and not answer.is_error:  # else it asks for input, or failed
            self._check(params.name, structured_content(answer))

    def _keep(self, name: str, schema: dict[str, Any] | None) -> None:
        self._validators.pop(name, None)
        if schema is not None:
            self._validators[name] = Validator(schema, f"the outputSchema of {name!r}")
            if len(self._validators) > self._limit:
                self._validators.popitem(last=False)

    def _check(self, name: str, content: object) -> None:
        if content is ABSENT:
            raise UnexpectedResult(f"the tool {name!r} gave no structured content, which its outputSchema demands")
        try:
            problems = self._validators[name].problems(content, "structuredContent")
        except InvalidResult as error:
            log.warning("%s", error)
            del self._validators[name]
            return
        for first in problems[:1]:
            problem = f"{first['path']}: {first['problem']}"
            raise UnexpectedResult(f"the result of the tool {name!r} does not fit its outputSchema: {problem}")
