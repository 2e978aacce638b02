"""Other names, texts and arguments for the tools of another server, stated as data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from mcp_bindgen.json_schema.keywords import KEYWORDS, REFERENCES, edited, nodes
from mcp_bindgen.json_schema.pointer import join
from mcp_bindgen.runtime.model.json_types import as_object, is_object
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, ProtocolError
from mcp_bindgen.runtime.protocol.methods import RequestMethod
from mcp_bindgen.runtime.protocol.routing import did_you_mean

from .catalog import Entry
from .context import Call, Layer, Middleware, Next, Result
from .errors import InvalidArguments, InvalidResult
from .features import text_block
from .handlers import BoundHandler
from .validation import Validator

_TEXTS = {"$schema", "title", "description", "$comment"}
_FREE = _TEXTS | {"$defs", "definitions", "type", "properties", "required", "additionalProperties"}
"""Keywords beside which single arguments can be changed; any other one may depend on several of them."""


class BadOverride(ValueError):
    """An override that cannot be used; the message begins with the pointer to the part."""


class _Data(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, frozen=True)


class ArgumentOverride(_Data):
    """Changes of an argument.

    Attributes:
        name: Its new name.
        description: Its new description.
        default: The value that the tool gets if a call has none; the argument is not required then.
        hide: True to offer the argument no more: the tool always gets the default, or nothing without one.
    """

    name: str | None = None
    description: str | None = None
    default: JsonValue = None
    hide: bool = False

    @property
    def has_default(self) -> bool:
        """True if a default is stated, which may be null."""
        return "default" in self.model_fields_set


class ToolOverride(_Data):
    """Changes of a tool.

    Attributes:
        name: Its new name; below `mount` with a prefix, the prefix stays.
        title: Its new name for display.
        description: Its new description.
        hide: True to offer the tool no more.
        arguments: Name of an argument -> its changes.
    """

    name: str | None = None
    title: str | None = None
    description: str | None = None
    hide: bool = False
    arguments: Mapping[str, ArgumentOverride] = Field(default_factory=dict[str, ArgumentOverride])


Overrides: TypeAlias = Mapping[str, ToolOverride | Mapping[str, Any]]
"""Name of a tool -> its changes, also in the form of JSON: `{"search": {"name": "find"}}`."""

_READER = TypeAdapter(dict[str, ToolOverride])


@runtime_checkable
class HasOverrides(Protocol):
    """Description of a server with changes of its tools, such as an entry of an `mcpServers` file."""

    @property
    def tools(self) -> Mapping[str, ToolOverride]:
        """Name of a tool -> its changes."""
        ...


def read_overrides(given: Overrides) -> dict[str, ToolOverride]:
    """Return checked overrides; raise `BadOverride` with all mistakes."""
    try:
        found = _READER.validate_python(dict(given))
    except ValidationError as error:
        wrong = (f"{join('', *one['loc'])}: {one['msg']}" for one in error.errors(include_url=False))
        raise BadOverride("; ".join(wrong)) from None
    names = [one.name or name for name, one in found.items() if not one.hide]
    for name, one in found.items():
        if one.name is not None and names.count(one.name) > 1:
            raise BadOverride(f"{join('', name, 'name')}: another tool is named {one.name!r}; choose another name")
    return found


class OverriddenTool:
    """A tool under an override; in the layers of a handler it translates arguments between two apps.

    Args:
        entry: Its entry, as its server lists it.
        override: Its changes.

    Attributes:
        name: Its name at the server.
        entry: Its changed entry.
        middlewares: Translates the arguments of a call; none if the server gets the same.

    Raises:
        BadOverride: The tool has no such argument, or the change of an argument cannot be made exactly.
    """

    def __init__(self, entry: Entry, override: ToolOverride) -> None:
        self.name: str = entry["name"]
        self._edits = {
            name: one for name, one in override.arguments.items() if one.name is not None or one.hide or one.has_default
        }
        texts = override.model_dump(include={"name", "title", "description"}, exclude_none=True)
        self.entry: Entry = {**entry, **texts}
        if override.arguments:
            place = join("", self.name, "arguments")
            self.entry["inputSchema"] = self._changed(as_object(entry.get("inputSchema")), override.arguments, place)
            self._validator = Validator(self.entry["inputSchema"], f"the inputSchema of {self.name!r}")
        names = as_object(as_object(self.entry.get("inputSchema")).get("properties"))
        self._gone = {name for name, one in self._edits.items() if one.hide or one.name} - names.keys()
        self.middlewares: Sequence[Middleware] = [self._translate] if self._edits else []

    def allows(self, *about: object, **more: object) -> bool:
        """Return True: an override that hides a tool leaves it out."""
        return True

    admits = allows

    async def _translate(self, call: Call, next: Next) -> Result:
        return await next(replace(call, arguments=self.arguments(call.arguments, call.name)))

    def arguments(self, given: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Return the arguments for the server; raise `InvalidArguments`, in the words of the override.

        Args:
            given: The arguments of a call.
            name: The name by which the tool was called.
        """
        if not self._edits:
            return dict(given)
        root = "params.arguments"
        wrong = self._validator.problems(dict(given), root)
        unknown = [] if wrong else sorted(self._gone & given.keys())  # the schema allows further members
        wrong += [{"path": root, "problem": f"{one!r} is unknown"} for one in unknown]
        if wrong:
            raise InvalidArguments(name, wrong)
        own = {one.name: former for former, one in self._edits.items()}
        defaults = {one: deepcopy(edit.default) for one, edit in self._edits.items() if edit.has_default}
        return {**defaults, **{own.get(one, one): value for one, value in given.items()}}

    def _changed(self, schema: Mapping[str, Any], edits: Mapping[str, ArgumentOverride], place: str) -> dict[str, Any]:
        """Return the schema of the changed arguments; raise `BadOverride`."""
        properties, required = as_object(schema.get("properties")), schema.get("required", [])
        for name in sorted(edits.keys() - properties.keys()):
            hint = did_you_mean(name, properties)
            raise BadOverride(f"{join(place, name)}: the tool has no such argument{hint}")
        found = dict(schema) if not self._edits else _independent(schema, place)
        kept: dict[str, Any] = {}
        names: dict[str, str] = {}
        for name, part in as_object(found.get("properties")).items():
            edit = edits.get(name, ArgumentOverride())
            if edit.has_default:
                _check_default(schema, name, edit.default, join(place, name, "default"))
            if edit.hide:
                if name in required and not edit.has_default:
                    raise BadOverride(f"{join(place, name, 'hide')}: the argument is required; state its default")
                continue
            names[name] = edit.name or name
            if names[name] in kept:
                raise BadOverride(f"{join(place, name, 'name')}: another argument is named {names[name]!r}")
            notes: dict[str, Any] = {} if edit.description is None else {"description": edit.description}
            notes |= {"default": edit.default} if edit.has_default else {}
            kept[names[name]] = {**(part if is_object(part) else {"allOf": [part]}), **notes} if notes else part
        needed = [names.get(one, one) for one in required if one not in edits or not edits[one].has_default]
        changed = {**found, "properties": kept, "required": needed}
        return changed if needed else {name: value for name, value in changed.items() if name != "required"}


def _independent(schema: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return a schema in which no part refers to its root or to a property; raise `BadOverride` if that is unknown.

    References to them lead to a copy of the schema in `$defs`, because the originals change.
    """
    references = [(word, node[word]) for _, node in nodes(schema) for word in REFERENCES if word in node]
    strange = [word for word in schema if word in KEYWORDS and word not in _FREE]
    strange += [word for word, to in references if word != "$ref" or not (to == "#" or str(to).startswith("#/"))]
    if strange:
        problem = f"arguments may depend on each other in the schema of the tool ({strange[0]})"
        raise BadOverride(f"{place}: {problem}; change its name and descriptions only")
    if all(str(to).startswith(("#/$defs/", "#/definitions/")) for _, to in references):
        return dict(schema)
    shared = ("$schema", "$defs", "definitions")
    copy = "original"
    while copy in as_object(schema.get("$defs")):
        copy += "_"

    def retarget(node: dict[str, Any], changed: dict[str, Any]) -> None:
        to = str(node.get("$ref", "#/$defs/"))
        if not to.startswith(("#/$defs/", "#/definitions/")):
            changed["$ref"] = f"#/$defs/{copy}{to[1:]}"

    found: dict[str, Any] = edited(schema, retarget)
    original = {word: value for word, value in found.items() if word not in shared}
    return {**found, "$defs": {**as_object(found.get("$defs")), copy: original}}


def _check_default(schema: Mapping[str, Any], name: str, value: JsonValue, place: str) -> None:
    optional = {word: part for word, part in schema.items() if word != "required"}
    try:
        wrong = Validator(optional, "the inputSchema").problems({name: value}, "")
    except InvalidResult as error:
        raise BadOverride(f"{place}: {error}") from None
    if wrong:
        raise BadOverride(f"{place}: {wrong[0]['problem']}")


class OverriddenTools:
    """The tools of a server under overrides, as they pass from a connection or a mounted app to its user.

    Args:
        overrides: Name of a tool -> its changes.
    """

    def __init__(self, overrides: Mapping[str, ToolOverride]) -> None:
        self._overrides = overrides
        self._former = {one.name or name: name for name, one in overrides.items() if not one.hide}
        self._known: dict[str, OverriddenTool] = {}

    def offered(self, entry: Entry) -> OverriddenTool | None:
        """Return a tool as it is offered, None if it is hidden; raise `BadOverride` if a change does not fit."""
        name = entry["name"]
        if name in self._former and name not in self._overrides:
            raise BadOverride(f"{join('', self._former[name], 'name')}: the server has a tool {name!r}, too")
        override = self._overrides.get(name, ToolOverride())
        tool = None if override.hide else OverriddenTool(entry, override)
        if tool is not None and name in self._overrides:
            self._known[tool.entry["name"]] = tool
        return tool

    def listed(self, tools: Iterable[Entry]) -> list[Entry]:
        """Return the changed entries of a page of the list; raise `BadOverride` if a change does not fit."""
        return [tool.entry for tool in map(self.offered, tools) if tool is not None]

    def all_listed(self, tools: Sequence[Entry]) -> list[Entry]:
        """Return the changed entries of the whole list; raise `BadOverride` also for a tool that it lacks."""
        names = {entry["name"] for entry in tools}
        for name in sorted(self._overrides.keys() - names):
            raise BadOverride(f"{join('', name)}: the server has no such tool{did_you_mean(name, names)}")
        return self.listed(tools)

    def name_of(self, name: str) -> str | None:
        """Return the name under which a tool is offered; None if it is hidden."""
        override = self._overrides.get(name, ToolOverride())
        return None if override.hide else override.name or name

    def view(self, handler: BoundHandler) -> BoundHandler | None:
        """Return the handler of a tool as it is offered, None if it is hidden; raise `BadOverride`."""
        tool = self.offered(handler.entry)
        if tool is None:
            return None
        own = [Layer(tool, tool.entry["name"])] if tool.middlewares else []
        return handler.viewed(tool.entry["name"], tool.entry, *own, *handler.layers)

    def knows(self, name: str) -> bool:
        """Return True unless the tool of that name is changed, and was not listed so far."""
        return name in self._known or name not in self._former

    def called(self, name: str, arguments: Mapping[str, Any] | None) -> tuple[str, Mapping[str, Any] | None]:
        """Return name and arguments for the server; raise `ProtocolError` for a former name and wrong arguments."""
        tool = self._known.get(name)
        if tool is not None:
            return tool.name, tool.arguments(arguments or {}, name) if tool.middlewares else arguments
        if name in self._overrides:
            raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {name}{did_you_mean(name, self._known)}")
        return name, arguments

    async def passed(
        self,
        method: RequestMethod[Any, Any, Any],
        params: Any,
        send: Callable[[Any], Awaitable[Any]],
        *,
        errors_in_results: bool,
    ) -> Any:
        """Return the result of a request that `send` passes on, with changed names, texts and arguments.

        Args:
            method: Its method.
            params: Its params, in the types of a revision.
            send: Passes the params on, and returns the result.
            errors_in_results: True if the result of a call tells that its arguments are invalid.
        """
        if method.name == "tools/call":
            try:
                name, arguments = self.called(params.name, params.arguments)
            except InvalidArguments as error:
                if not errors_in_results:
                    raise
                return jsonrpc.typed_result(method, {"content": [text_block(error.message)], "isError": True})
            params = params.model_copy(update={"name": name, "arguments": arguments})
        result = await send(params)
        if method.name != "tools/list":
            return result
        wire = jsonrpc.plain(result)
        try:
            return jsonrpc.typed_result(method, {**wire, "tools": self.listed(wire["tools"])})
        except BadOverride as error:
            raise ProtocolError(INTERNAL_ERROR, f"the override of a tool does not fit: {error}") from None
