"""Derive the entries of a contract from annotated functions, and call these with typed arguments.

Names, types and defaults come from the signature, words from the docstring. pydantic says what a type looks like in
JSON, so a schema refers only to its own `$defs`.

What a tool returns decides about `outputSchema`. An object is described as it is; text, or nothing, is plain
content and has none. Any other value stands under `result` in an object, as structured content had to be an object in
all revisions up to 2025-11-25.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import wraps
from types import ModuleType
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_jsonable_python

from mcp_bindgen.runtime.model.base import Model
from mcp_bindgen.runtime.model.json_types import is_array, is_object
from mcp_bindgen.runtime.protocol.routing import place_of

from .catalog import Entry
from .errors import BadFunction, require
from .handlers import HandlerSpec
from .types import adapter
from .uri_template import UriTemplate

Function: TypeAlias = Callable[..., Any]
Schema: TypeAlias = dict[str, Any]

RESULT = "result"
"""The member under which a value stands that is no object."""

_INTEGER = "^(0|-?[1-9][0-9]*)$"
_CONTEXT = ("ctx", "context")
_UNFIT = {
    inspect.Parameter.VAR_POSITIONAL: ("*{} takes any number of arguments", "give it a name and a list type"),
    inspect.Parameter.VAR_KEYWORD: ("**{} takes arguments of any name", "name them, or take one dict"),
    inspect.Parameter.POSITIONAL_ONLY: ("{} has no name for its caller", "remove the / behind it"),
}
_MISSING: Any = inspect.Parameter.empty
_PLAIN = (None, type(None), str, Any, object)


def public_functions(module: ModuleType) -> list[tuple[str, Function]]:
    """Return the functions that a module offers: those in `__all__`, else its own without a leading underscore."""
    listed = getattr(module, "__all__", None)
    found = [(name, getattr(module, name, None)) for name in (listed if listed is not None else list(vars(module)))]
    return [
        (name, value)
        for name, value in found
        if inspect.isfunction(value) and (listed is not None or (not name.startswith("_") and _is_own(value, module)))
    ]


def _is_own(function: Function, module: ModuleType) -> bool:
    """Return whether a function was written down in a module with `def`."""
    return function.__module__ == module.__name__ and function.__name__.isidentifier()


def tool_entry(function: Function, name: str = "") -> Entry:
    """Return the entry of `tools/list` for a function.

    Args:
        function: The function, `def` or `async def`.
        name: What the tool is called; by default like the function.

    Raises:
        BadFunction: There can be none; the error names file, line and what to do.
        ImportError: `mcp-bindgen[app]` is not installed.
    """
    return FunctionHandler(function, name).tool()[1]


class FunctionHandler:
    """A function that answers for an entry of a contract.

    Args:
        function: The function, `def` or `async def`.
        name: What the entry is called; by default like the function.

    Raises:
        BadFunction: Its signature cannot be put as an entry.
        ImportError: `mcp-bindgen[app]` is not installed.
    """

    def __init__(self, function: Function, name: str = "") -> None:
        require("docstring_parser", "describing functions")
        import docstring_parser

        self.function = function
        self.name = name or function.__name__
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise self.bad("yields values one by one", "return a list")
        with self._checking("the annotations"):
            self._hints = get_type_hints(function, include_extras=True)
        words = docstring_parser.parse(inspect.getdoc(function) or "")
        self._words = {word.arg_name: _line(word.description) for word in words.params}
        self._about = (words.description or "").strip()
        self._returned = _line(words.returns.description) if words.returns is not None else ""
        self._context: str | None = None
        self._names: dict[str, str] = {}
        self._is_json = self._is_prompt = False
        self._input = self._arguments()

    # --- entries ----------------------------------------------------------------------------------------------

    def tool(self) -> tuple[HandlerSpec, Entry]:
        """Return how the function handles a tool, and the tool's entry: name, description and schemas."""
        annotation = self._hints.get("return", _MISSING)
        output, wrapped = self._output(annotation)
        told = [self._about, f"Returns: {self._returned}" if output is None and self._returned else ""]
        entry: Entry = {"name": self.name, **_known(description="\n\n".join(filter(None, told)))}
        schema = self._schema(self._input, "validation", "the parameters")
        entry["inputSchema"] = {"type": "object", "properties": schema.get("properties", {})}
        entry["inputSchema"] |= {key: schema[key] for key in ("required", "$defs") if key in schema}
        if output is not None:
            entry["outputSchema"] = {**output, **_known(description=self._returned)}
        kind = None if output is None else annotation
        self._is_json = annotation in (Any, object)
        return HandlerSpec("tool", self.name, self._read, kind, RESULT if wrapped else None), entry

    def prompt(self) -> tuple[HandlerSpec, Entry]:
        """Return how the function handles a prompt, and the prompt's entry: its arguments are texts."""
        schema = self._schema(self._input, "validation", "the parameters")
        self._is_prompt = True
        entry: Entry = {"name": self.name, **_known(description=self._about)}
        arguments = [self._argument(name, one, schema) for name, one in schema.get("properties", {}).items()]
        return HandlerSpec("prompt", self.name, self._read), {
            **entry,
            **({"arguments": arguments} if arguments else {}),
        }

    def resource(self, uri: str) -> tuple[HandlerSpec, Entry]:
        """Return how the function reads a resource, or those of a URI template, and the entry."""
        template = UriTemplate(uri)
        variables = [variable.name for variable in template.variables]
        schema = self._schema(self._input, "validation", "the parameters")
        for name in self._names:
            if name not in variables and name in schema.get("required", ()):
                raise self.bad(f"the parameter {name} is not in {uri}", f"write {{{name}}} into the URI template")
        for name in variables:
            if name not in self._names:
                raise self.bad(f"{{{name}}} of {uri} is no parameter", f"take {name}: str")
        about: Entry = {"name": self.name, **_known(description=self._about)}
        annotation = self._hints.get("return", str)
        self._is_json = annotation not in (str, bytes) and not _is_protocol(annotation)
        if self._is_json:
            self._schema(annotation, "serialization", "what it returns")
            about["mimeType"] = "application/json"
        if not variables:
            return HandlerSpec("resource", uri), {"uri": uri, **about}
        described = [self._argument(name, one, schema) for name, one in schema["properties"].items()]
        about |= _known(variables=[{key: one[key] for key in ("name", "enum")} for one in described if "enum" in one])
        return HandlerSpec("template", uri, self._read), {"uriTemplate": uri, **about}

    def _argument(self, name: str, schema: Schema, whole: Schema) -> Entry:
        """Return the entry for an argument of a prompt; what it may be is for completion."""
        target: Schema = whole.get("$defs", {}).get(schema.get("$ref", "").removeprefix("#/$defs/"), schema)
        texts: list[Any] = target.get("enum", [target["const"]] if "const" in target else [])
        choices = texts if all(isinstance(text, str) for text in texts) else []
        required = {"required": True} if name in whole.get("required", ()) else {}
        return {"name": name, **_known(description=schema.get("description")), **required, **_known(enum=choices)}

    # --- calls ------------------------------------------------------------------------------------------------

    @property
    def _read(self) -> Any:
        """The type of the arguments; `None` if there are none."""
        return self._input if self._names else None

    def method(self) -> Function:
        """Return the function as a handler's method: takes the typed arguments, if there are any, and the context."""

        def given(taken: tuple[Any, ...]) -> dict[str, Any]:
            arguments = taken[0] if len(taken) > 1 else None
            named = {
                name: getattr(arguments, field)
                for name, field in self._names.items()
                if arguments is not None and field in arguments.model_fields_set
            }
            return named if self._context is None else {**named, self._context: taken[len(taken) - 1]}

        if inspect.iscoroutinefunction(self.function):

            @wraps(self.function)
            async def wait(*taken: Any) -> Any:
                return self._content(await self.function(**given(taken)))

            return wait

        @wraps(self.function)
        def call(*taken: Any) -> Any:
            return self._content(self.function(**given(taken)))

        return call

    def _content(self, value: Any) -> Any:
        """Return what a function returned in a form that handlers may return: see `_features`."""
        if isinstance(value, Model):
            return [value] if {"type", "role"} & type(value).model_fields.keys() else value
        if self._is_json:
            return adapter(self._hints.get("return", Any)).dump_json(value, warnings="error").decode()
        if self._is_prompt and is_array(value):
            return [_user(item) if isinstance(item, str) else item for item in value]
        return [] if value is None and self._hints.get("return") in (None, type(None)) else value

    # --- types ------------------------------------------------------------------------------------------------

    def _arguments(self) -> type[BaseModel]:
        """Return the model of the arguments: a field for each parameter."""
        fields: dict[str, Any] = {}
        for name, parameter in inspect.signature(self.function).parameters.items():
            if name in _CONTEXT and _is_context(self._hints.get(name)):
                self._context = name
                continue
            if parameter.kind in _UNFIT:
                problem, fix = _UNFIT[parameter.kind]
                raise self.bad(problem.format(name), fix)
            if name not in self._hints:
                raise self.bad(f"the parameter {name} has no type", f"write {name}: str, or whatever it is")
            hint = self._hints[name]
            default = self._default(name, hint, parameter.default)
            self._schema(hint, "validation", f"the parameter {name}")
            about = Field(default, alias=name, description=_own_words(hint) or self._words.get(name) or None)
            self._names[name] = f"p{len(fields)}"  # any name will do that pydantic has no use for
            fields[self._names[name]] = (hint, about)
        with self._checking("the parameters"):
            return create_model("Arguments", **fields)

    def _default(self, name: str, annotation: Any, default: Any) -> Any:
        """Return the default as pydantic takes it: `...` where there is none."""
        if default is _MISSING:
            return ...
        with self._checking(f"the parameter {name}"):
            adapter: TypeAdapter[Any] = TypeAdapter(annotation)
            try:
                adapter.validate_python(default)
            except ValidationError:
                fix = f"write {name}: ... | None = None" if default is None else "correct the default or the type"
                raise self.bad(f"the default of {name}, {default!r}, is not of its type", fix) from None
        return default

    def _output(self, annotation: Any) -> tuple[Schema | None, bool]:
        """Return the schema of the structured content, `None` for content alone, and whether it wraps a value."""
        if annotation is _MISSING:
            raise self.bad("does not say what it returns", "write -> str, -> None or whatever it is")
        if annotation is bytes:
            raise self.bad("returns bytes, which JSON has no word for", "return text, or a content block")
        if annotation in _PLAIN or _is_protocol(annotation):
            return None, False
        schema = self._schema(annotation, "serialization", "what it returns")
        definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
        if _is_record(schema, definitions.get("$defs", {})):
            return {"type": "object", **schema, **definitions}, False
        schema.pop("title", None)
        return {"type": "object", "properties": {RESULT: schema}, "required": [RESULT], **definitions}, True

    def _schema(self, annotation: Any, mode: Any, what: str) -> Schema:
        """Return pydantic's schema of a type, without the titles that only repeat names."""
        with self._checking(what):
            adapter: TypeAdapter[Any] = TypeAdapter(annotation)
            schema = adapter.json_schema(mode=mode, schema_generator=_Plain)
        for name, definition in schema.get("$defs", {}).items():
            if is_object(definition) and definition.get("title") == name:
                del definition["title"]
        return schema

    @contextmanager
    def _checking(self, what: str) -> Generator[None]:
        """Turn what is wrong with a type into one line."""
        try:
            yield
        except (PydanticUserError, NameError, TypeError, AttributeError, SyntaxError) as error:
            reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
            raise self.bad(f"{what} cannot be put as JSON Schema: {reason}", "use types that JSON has") from None

    def bad(self, problem: str, fix: str) -> BadFunction:
        """Return the error for this function, with its file and line."""
        return BadFunction(f"{self.name}: {problem}", fix, place_of(self.function))


class _Plain(GenerateJsonSchema):
    """JSON Schema without titles for members, and silent about defaults that JSON cannot say."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return no: a title would be the member's name once more."""
        return False

    def dict_schema(self, schema: Any) -> Any:
        """Return the schema of an object; integers as names are written in one way, so no two are the same."""
        names = {"propertyNames": {"pattern": _INTEGER}} if schema.get("keys_schema", {}).get("type") == "int" else {}
        return super().dict_schema(schema) | names

    def encode_default(self, dft: Any) -> Any:
        """Return a default as JSON has it."""
        return to_jsonable_python(dft, by_alias=True)


def _user(text: str) -> dict[str, Any]:
    """Return the message of a user in wire form."""
    return {"role": "user", "content": {"type": "text", "text": text}}


def _known(**members: Any) -> dict[str, Any]:
    """Return the members that say something."""
    return {name: value for name, value in members.items() if value}


def _own_words(annotation: Any) -> str:
    """Return the description that `Annotated` gives a type; empty where it has none."""
    extra = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return next((about.description for about in reversed(extra) if getattr(about, "description", None)), "")


def _line(text: str | None) -> str:
    """Return a docstring section in one line: where it was folded means nothing."""
    return " ".join((text or "").split())


def _is_record(schema: Schema, definitions: Mapping[str, Schema]) -> bool:
    """Return whether a schema is that of an object, be it by reference."""
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    return schema.get("type") == "object" or definitions.get(name, {}).get("type") == "object"


def _is_context(annotation: Any) -> bool:
    """Return whether an annotation names a class `Context`, or several."""
    if isinstance(annotation, type):
        return any(base.__name__ == "Context" for base in annotation.__mro__)
    origin, forms = get_origin(annotation), get_args(annotation)
    if isinstance(origin, type) and origin.__name__ == "Context":
        return True
    return bool(forms) and all(form is type(None) or _is_context(form) for form in forms)


def _is_protocol(annotation: Any) -> bool:
    """Return whether an annotation names types of the protocol: content blocks, or a whole result."""
    forms = get_args(annotation)
    if isinstance(annotation, type) and not forms:
        return issubclass(annotation, Model)
    return any(_is_protocol(form) for form in forms)
