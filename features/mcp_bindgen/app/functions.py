"""Derive the entries of a contract from annotated functions, and call the functions with typed arguments.

Names, types and defaults come from the signature, descriptions from the docstring. pydantic makes the schemas of types,
so a schema refers only to its own `$defs`.

The return annotation of a tool decides about `outputSchema`. An object is described as it is. Text and `None` are plain
content and have no schema. Any other value is the member `result` of an object, because structured content must be an
object in all revisions up to 2025-11-25.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial, reduce, wraps
from typing import Any, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticSerializationError, SchemaError, core_schema, to_json, to_jsonable_python

from mcp_bindgen.runtime.lazy import require
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.base import Model
from mcp_bindgen.runtime.model.json_types import is_array, is_object, parse_json
from mcp_bindgen.runtime.protocol.routing import place_of
from mcp_bindgen.runtime.session.context import Context

from .catalog import Entry
from .errors import BadFunction, InvalidResult
from .handlers import HandlerSpec
from .values import File, TypeForm, type_name

T = TypeVar("T")

_COROUTINES = frozenset(name for name in dir(Context) if inspect.iscoroutinefunction(getattr(Context, name)))


_BLOCKING = ("time.sleep", "subprocess.", "requests.", "urllib.request.", "posix.system", "nt.system", "builtins.input")
"""Beginnings of the full names of functions that block their thread."""


_USERS = (ast.Expr, ast.If, ast.While, ast.Assert, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.BinOp, ast.FormattedValue)
"""Nodes whose children are values, so that a coroutine there is a mistake."""


def _nodes(function: Callable[..., Any]) -> Iterator[ast.AST]:
    """Yield the nodes of a function's source without those of inner functions; none if there is no source."""
    try:
        nodes: list[ast.AST] = [*ast.parse(textwrap.dedent(inspect.getsource(function))).body]
    except (OSError, TypeError, SyntaxError):
        return
    own = len(nodes)
    while nodes:
        node = nodes.pop()
        yield node
        if own > 0 or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            nodes += ast.iter_child_nodes(node)
        own -= 1


def _member(module: object, name: str) -> object:
    """Return a member of a module; objects of the author are not touched."""
    return vars(module).get(name) if isinstance(module, types.ModuleType) else None


def blocking(function: Callable[..., Any]) -> Iterator[str]:
    """Yield the calls in a coroutine function that are known to block the event loop, such as `time.sleep`."""
    for node in _nodes(function) if inspect.iscoroutinefunction(function) else ():
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            first, *rest = name.split(".")
            known = inspect.getclosurevars(inspect.unwrap(function))
            called: Any = reduce(_member, rest, {**known.builtins, **known.globals, **known.nonlocals}.get(first))
            if f"{getattr(called, '__module__', '')}.{getattr(called, '__name__', '')}".startswith(_BLOCKING):
                yield name


def unawaited(function: Callable[..., Any], contexts: Collection[str]) -> Iterator[str]:
    """Yield the calls of the context's coroutine functions, such as `ctx.ask`, whose result nothing awaits.

    Args:
        function: The function.
        contexts: The parameters that take the context.
    """
    users = _USERS if inspect.iscoroutinefunction(function) else (*_USERS, ast.Assign, ast.Return)
    for node in _nodes(function):
        for call in ast.iter_child_nodes(node) if isinstance(node, users) else ():
            target = call.func if isinstance(call, ast.Call) else None
            if isinstance(target, ast.Attribute) and target.attr in _COROUTINES:
                owner = ast.unparse(target.value)
                yield from [f"{owner}.{target.attr}"] if owner in contexts else ()


def hints_of(function: Callable[..., Any], place: str = "") -> dict[str, TypeForm]:
    """Return the annotations of a function; raise `BadFunction` for any other callable, such as a partial or `int`."""
    is_function = inspect.isclass(function) or inspect.isroutine(inspect.unwrap(function))
    try:
        inspect.signature(function)
    except (TypeError, ValueError):  # no callable, or a class that has no signature
        is_function = False
    if not is_function:
        raise BadFunction(f"{function!r} is no function", "write a def that calls it", place or place_of(function))
    return get_type_hints(function, include_extras=True)


@dataclass(frozen=True)
class Depends:
    """Fills a parameter with the value of a function: `db: Annotated[Db, Depends(open_db)]`.

    The parameter is no part of the schema. The function is `def` (run in a thread) or `async def`, and may take the
    context and dependencies of its own. It is called once for a call. If it yields its value, the rest of it runs after
    the call.

    Attributes:
        function: The function.
    """

    function: Callable[..., Any]


class Injection:
    """Parameters of a function that are no arguments: contexts, dependencies and a value of a given type.

    Args:
        function: The function.
        hints: Its annotations.
        given: The type of a value that its method takes before the context; `None` if there is none.

    Attributes:
        contexts: The parameters that take the context.
        given: The parameters that take that value.
        dependencies: Parameter -> the dependency that fills it.

    Raises:
        BadFunction: A dependency takes a parameter that nothing fills.
    """

    def __init__(self, function: Callable[..., Any], hints: Mapping[str, TypeForm], given: TypeForm = None) -> None:
        self.contexts: list[str] = [name for name, hint in hints.items() if name != "return" and is_context(hint)]
        self.given: list[str] = [name for name, hint in hints.items() if name != "return" and hint is given]
        made = {name: found.function for name, hint in hints.items() if (found := _depends(hint)) is not None}
        self.dependencies: dict[str, _Dependency] = {name: _Dependency(one, function) for name, one in made.items()}

    def __contains__(self, name: str) -> bool:
        return name in self.contexts or name in self.given or name in self.dependencies

    async def values(self, ctx: Context, known: dict[Any, Any], stack: AsyncExitStack) -> dict[str, Any]:
        """Return parameter -> value.

        Args:
            ctx: The context of the call.
            known: Function -> value, of the dependencies of this call so far.
            stack: Closes the dependencies after the call.
        """
        found: dict[str, Any] = dict.fromkeys(self.contexts, ctx)
        for name, dependency in self.dependencies.items():
            if dependency.function not in known:
                known[dependency.function] = await dependency.value(ctx, known, stack)
            found[name] = known[dependency.function]
        return found


class _Dependency:
    def __init__(self, function: Callable[..., Any], user: Callable[..., Any]) -> None:
        self.function = function
        place = place_of(function if hasattr(inspect.unwrap(function), "__code__") else user)
        self._injection = Injection(function, hints_of(function, place))
        for name, parameter in inspect.signature(function).parameters.items():
            if name not in self._injection and parameter.default is parameter.empty:
                fix = f"annotate it as Context or with Depends(...), or give {name} a default"
                raise BadFunction(f"{function.__name__}: nothing fills the parameter {name}", fix, place)

    async def value(self, ctx: Context, known: dict[Any, Any], stack: AsyncExitStack) -> Any:
        """Return the value; the stack closes it."""
        function, given = self.function, await self._injection.values(ctx, known, stack)
        maker: Callable[..., Any] = inspect.unwrap(function)
        is_manager = maker is not function  # the function is made by contextlib
        if inspect.isasyncgenfunction(maker):
            make: Callable[..., Any] = function if is_manager else asynccontextmanager(maker)
            return await stack.enter_async_context(make(**given))
        if inspect.isgeneratorfunction(maker):
            manager: Any = (function if is_manager else contextmanager(maker))(**given)

            async def leave(*error: Any) -> Any:
                return await threaded(ctx, lambda: manager.__exit__(*error))

            value = await threaded(ctx, manager.__enter__)
            stack.push_async_exit(leave)
            return value
        if inspect.iscoroutinefunction(function):
            return await function(**given)
        return await threaded(ctx, partial(function, **given))


async def threaded(ctx: Context, work: Callable[[], Any]) -> Any:
    """Return the value of a function that runs in a thread, which counts for the sender of the request."""

    from mcp_bindgen.runtime.threads import in_thread  # many functions do not block

    def run(ctx: Context) -> Any:
        return work()

    return await in_thread(run)(ctx)


def _depends(annotation: TypeForm) -> Depends | None:
    """Return the dependency of an annotation, or None."""
    return next((one for one in getattr(annotation, "__metadata__", ()) if isinstance(one, Depends)), None)


def is_context(annotation: TypeForm) -> bool:
    """Return True if an annotation names one class `Context` or several."""
    forms = get_args(annotation)
    kind = get_origin(annotation) or annotation
    if isinstance(kind, type) and any(base.__name__ == "Context" for base in kind.__mro__):
        return True
    return bool(forms) and all(form is type(None) or is_context(form) for form in forms)


Function: TypeAlias = Callable[..., Any]
Schema: TypeAlias = dict[str, Any]

RESULT = "result"
"""The member of structured content that contains a value that is no object."""

_INTEGER = "^(0|-?[1-9][0-9]*)$"
_UNFIT = {
    inspect.Parameter.VAR_POSITIONAL: ("*{0} takes any number of arguments", "write {0}: list[{1}]"),
    inspect.Parameter.VAR_KEYWORD: ("**{0} takes arguments of any name", "name them, or write {0}: dict[str, {1}]"),
    inspect.Parameter.POSITIONAL_ONLY: ("{0} is positional-only, but clients pass names", "remove the / after {0}"),
}
_MISSING: Any = inspect.Parameter.empty
_NO_SCHEMA = "Unable to generate pydantic-core schema for "
_PLAIN = (None, type(None), str, bytes, Any, object)


def tool_entry(function: Function, name: str = "") -> Entry:
    """Return the entry of `tools/list` for a function.

    Args:
        function: The function, `def` or `async def`.
        name: The name of the tool; by default the function's name.

    Raises:
        BadFunction: The function cannot be a tool; the error names file, line and a fix.
        ImportError: `mcp-bindgen[app]` is not installed.
    """
    return FunctionHandler(function, name).tool()[1]


class FunctionHandler:
    """A function that handles an entry of a contract.

    Args:
        function: The function, `def` or `async def`.
        name: The name of the entry; by default the function's name.
        debug: True to report coroutine functions that block the event loop.
        given: The type of a value that is no argument: see `Injection`.

    Attributes:
        advice: Advice to the author, each with file and line.

    Raises:
        BadFunction: Its signature cannot be an entry.
        ImportError: `mcp-bindgen[app]` is not installed.
    """

    def __init__(self, function: Function, name: str = "", *, debug: bool = False, given: TypeForm = None) -> None:
        require("describing functions", "docstring_parser", extra="app")
        import docstring_parser

        self.function = function
        self.name: str = name or getattr(function, "__name__", "")
        self.advice: list[str] = []
        self._debug, self._given = debug, given
        if self.name == "<lambda>":
            raise self.bad("a lambda has no name, types or description", "write a function: def name(text: str) -> str")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise self.bad("yields values one by one", "return a list")
        with self._checking("the annotations"):
            self._hints = hints_of(function)
            self._injection = Injection(function, self._hints, given)
        parsed = docstring_parser.parse(inspect.getdoc(function) or "")
        self._descriptions = {one.arg_name: _line(one.description) for one in parsed.params}
        self._about = (parsed.description or "").strip()
        self._returned = _line(parsed.returns.description) if parsed.returns is not None else ""
        for call in unawaited(function, self._injection.contexts) if self._injection.contexts else ():
            start = "write" if inspect.iscoroutinefunction(function) else f"write async def {function.__name__}, and"
            raise self.bad(f"{call} is a coroutine function, and nothing awaits it", f"{start} await {call}(...)")
        for call in dict.fromkeys(blocking(function)):
            fix = f"write def {function.__name__}, which runs in a thread, or await a call that does not block"
            self._advise(f"{call} blocks the event loop in async def", fix)
        self._names: dict[str, str] = {}
        self._is_json = False
        self._input = self._arguments()

    # --- entries ----------------------------------------------------------------------------------------------

    def tool(self) -> tuple[HandlerSpec, Entry]:
        """Return the spec and the entry of a tool: name, description and schemas."""
        annotation = self._hints.get("return", _MISSING)
        output, wrapped = self._output(annotation)
        if not self._about:
            self._advise("no description, by which models choose tools", "write a docstring")
        paragraphs = [self._about, f"Returns: {self._returned}" if output is None and self._returned else ""]
        entry: Entry = {"name": self.name, **_known(description="\n\n".join(filter(None, paragraphs)))}
        schema = self._schema(self._input, "validation", "the parameters")
        properties = schema.get("properties", {})
        entry["inputSchema"] = {"type": "object", "properties": properties, "additionalProperties": False}
        entry["inputSchema"] |= {key: schema[key] for key in ("required", "$defs") if key in schema}
        if output is not None:
            entry["outputSchema"] = {**output, **_known(description=self._returned)}
        kind = None if output is None else annotation
        self._is_json = annotation in (Any, object)
        return HandlerSpec("tool", self.name, self._read, kind, RESULT if wrapped else None), entry

    def prompt(self) -> tuple[HandlerSpec, Entry]:
        """Return the spec and the entry of a prompt, whose arguments are texts."""
        self._check_texts(self._names)
        schema = self._schema(self._input, "validation", "the parameters")
        entry: Entry = {"name": self.name, **_known(description=self._about)}
        arguments = [self._argument(name, one, schema) for name, one in schema.get("properties", {}).items()]
        return HandlerSpec("prompt", self.name, self._read), {**entry, **_known(arguments=arguments)}

    def resource(self, uri: str) -> tuple[HandlerSpec, Entry]:
        """Return the spec and the entry of a resource or a URI template."""
        from .uri_template import UriTemplate  # few functions are resources

        template = UriTemplate(uri)
        variables = [variable.name for variable in template.variables]
        schema = self._schema(self._input, "validation", "the parameters")
        for name in self._names:
            if name not in variables and name in schema.get("required", ()):
                free = [one for one in variables if one not in self._names][:1]
                rename = "".join(f", or rename the parameter to {one}" for one in free)
                raise self.bad(f"the parameter {name} is not in {uri}", f"write {{{name}}} into the URI{rename}")
        for name in variables:
            if name not in self._names:
                raise self.bad(f"{{{name}}} of {uri} is no parameter", f"take {name}: str")
        self._check_texts(variable.name for variable in template.variables if not variable.explode)
        about: Entry = {"name": self.name, **_known(description=self._about)}
        annotation = self._hints.get("return", str)
        self._is_json = annotation not in (str, bytes) and not _is_protocol(annotation)
        if self._is_json:
            self._schema(annotation, "serialization", "the return value")
            about["mimeType"] = "application/json"
        if not variables:
            return HandlerSpec("resource", uri), {"uri": uri, **about}
        described = [self._argument(name, one, schema) for name, one in schema["properties"].items()]
        about |= _known(variables=[{key: one[key] for key in ("name", "enum")} for one in described if "enum" in one])
        return HandlerSpec("template", uri, self._read), {"uriTemplate": uri, **about}

    def completion(self) -> Function:
        """Return the function as a method that completes a value: it takes the value, as `given`, and the context."""
        parameters, self._names = inspect.signature(self.function).parameters, {}
        for name, parameter in parameters.items():
            if name not in self._injection and parameter.default is _MISSING:
                fix = f"annotate it as Completion or Context or with Depends(...), or give {name} a default"
                raise self.bad(f"nothing fills the parameter {name}", fix)
        return self.method()

    def _check_texts(self, names: Iterable[str]) -> None:
        """Raise `BadFunction` for a parameter whose type, such as `list[str]`, is of no text."""
        for name in names:
            try:
                TypeAdapter[Any](self._hints[name]).validate_json('""')
            except ValidationError as error:
                kinds = [one["type"] for one in error.errors()]
                if all(kind.endswith("_type") or kind == "sequence_str" for kind in kinds):
                    problem = f"the type of the parameter {name} takes no text, and clients send texts"
                    raise self.bad(problem, f"write {name}: str, and read the text") from None
            except Exception as error:  # of the author's validator, which may expect another text
                log.debug("%s: a validator of %s failed for an empty text: %s", self.name, name, error)

    def _argument(self, name: str, schema: Schema, whole: Schema) -> Entry:
        """Return the entry for an argument of a prompt; its `enum` is for completion."""
        target: Schema = whole.get("$defs", {}).get(schema.get("$ref", "").removeprefix("#/$defs/"), schema)
        texts: list[Any] = target.get("enum", [target["const"]] if "const" in target else [])
        choices = texts if all(isinstance(text, str) for text in texts) else []
        required = {"required": True} if name in whole.get("required", ()) else {}
        return {"name": name, **_known(description=schema.get("description")), **required, **_known(enum=choices)}

    # --- calls ------------------------------------------------------------------------------------------------

    @property
    def _read(self) -> TypeForm:
        """The type of the arguments; `None` if there are none."""
        return self._input if self._names else None

    def method(self) -> Function:
        """Return the function as a handler's method: takes the typed arguments, if there are any, and the context."""
        fields, injection = tuple(self._names.items()), self._injection
        is_async = inspect.iscoroutinefunction(self.function)
        parameters = inspect.signature(self.function).parameters
        always = {field for name, field in fields if parameters[name].default is _MISSING}  # Annotated has a default

        def named(taken: tuple[Any, ...]) -> dict[str, Any]:
            found = {**dict.fromkeys(injection.contexts, taken[-1]), **dict.fromkeys(injection.given, taken[0])}
            if fields and len(taken) > 1:
                values, given = taken[0].__dict__, taken[0].__pydantic_fields_set__
                found |= {name: values[field] for name, field in fields if field in given or field in always}
            return found

        def begun(values: dict[str, Any]) -> Any:
            if not self._debug:
                return self.function(**values)
            from .debugging import watched  # only in debug mode

            return watched(self.function(**values), self.function)

        def finished(value: object) -> Any:
            if inspect.iscoroutine(value):
                value.close()
                called = value.__name__
                problem = f"{self.name} returned the coroutine of {called}(); write return await {called}(...)"
                raise InvalidResult(problem, self.function)
            return value if type(value) is str and not self._is_json else self._content(value)

        if injection.dependencies:

            @wraps(self.function)
            async def provided(*taken: Any) -> Any:
                async with AsyncExitStack() as stack:
                    values = {**named(taken), **await injection.values(taken[-1], {}, stack)}
                    if is_async:
                        return finished(await begun(values))
                    return await threaded(taken[-1], lambda: self._content(self.function(**values)))

            return provided
        if is_async:

            @wraps(self.function)
            async def wait(*taken: Any) -> Any:
                return finished(await begun(named(taken)))

            return wait

        @wraps(self.function)
        def call(*taken: Any) -> Any:
            return self._content(self.function(**named(taken)))

        return call

    def _content(self, value: object) -> object:
        """Return the value of a function in a form that handlers may return: see `features`."""
        if isinstance(value, File):
            return [value]
        if isinstance(value, Model):
            return [value] if {"type", "role"} & type(value).model_fields.keys() else value
        if self._is_json:
            from .validation import written  # few functions return any JSON value

            try:
                return written(self._hints.get("return", Any), value)
            except ValueError as error:
                advice = "which JSON cannot express; return a model, a dataclass or a dict"
                raise InvalidResult(f"{self.name} returned {type(value).__name__}, {advice}", self.function) from error
        return [] if value is None and self._hints.get("return") in (None, type(None)) else value

    # --- types ------------------------------------------------------------------------------------------------

    def _arguments(self) -> type[BaseModel]:
        """Return the model of the arguments: a field for each parameter."""
        fields: dict[str, Any] = {}
        for name, parameter in inspect.signature(self.function).parameters.items():
            if name in self._injection:
                continue
            if parameter.kind in _UNFIT:
                hint = type_name(self._hints.get(name, str))
                raise self.bad(*(part.format(name, hint) for part in _UNFIT[parameter.kind]))
            if name not in self._hints:
                raise self.bad(*self._untyped(name))
            hint = self._hints[name]
            if (alias := _own(hint, "validation_alias")) is not None:
                fix = "give the parameter the name that clients use, or take a model whose field has the alias"
                raise self.bad(f"the parameter {name} cannot have the alias {alias!r}", fix)
            if parameter.default is _MISSING and type(None) in get_args(hint):
                fix = f"write {name}: {type_name(hint)} = None to make it optional"
                self._advise(f"{name} may be None, but callers must pass it", fix)
            default = self._default(name, hint, parameter.default)
            self._schema(hint, "validation", f"the parameter {name}")
            description = _own(hint, "description") or self._descriptions.get(name) or None
            about = Field(default, alias=name, description=description)
            self._names[name] = f"p{len(fields)}"  # a name without a meaning to pydantic
            fields[self._names[name]] = (hint, about)
        with self._checking("the parameters"):
            return create_model("Arguments", **fields)

    def _untyped(self, name: str) -> tuple[str, str]:
        """Return problem and fix for a parameter without annotation."""
        if name in ("ctx", "context"):
            return f"the parameter {name} has no type", f"write {name}: Context (from mcp_bindgen.app import Context)"
        if name in ("self", "cls"):
            owner, _, own = self.function.__qualname__.rpartition(".")
            fix = f"offer the method of an object after the class: app.add_tool({owner or 'Class'}(...).{own})"
            return f"this method needs an object, and nothing passes {name}", fix
        return f"the parameter {name} has no type", f"annotate it, as in {name}: {type_name(self._given or str)}"

    def _default(self, name: str, annotation: TypeForm, default: object) -> Any:
        """Return the default for pydantic, `...` for none; raise `BadFunction` if it is not of its type."""
        if default is _MISSING:
            return ...
        with self._checking(f"the parameter {name}"):
            try:
                TypeAdapter[Any](annotation).validate_python(default)
            except ValidationError:
                fix = f"write {name}: ... | None = None" if default is None else "correct the default or the type"
                raise self.bad(f"the default of {name}, {default!r}, is not of its type", fix) from None
        return default

    def _output(self, annotation: TypeForm) -> tuple[Schema | None, bool]:
        """Return the schema of the structured content, `None` for content alone, and True if it wraps a value."""
        if annotation is _MISSING:
            fix = "write -> str, -> None, or a type that JSON can express, such as a dataclass or a pydantic model"
            raise self.bad("no return annotation, from which the schema follows", fix)
        if annotation in _PLAIN or _is_protocol(annotation):
            return None, False
        schema = self._schema(annotation, "serialization", "the return value")
        definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
        if _is_record(schema, definitions.get("$defs", {})):
            return {"type": "object", **schema, **definitions}, False
        schema.pop("title", None)
        return {"type": "object", "properties": {RESULT: schema}, "required": [RESULT], **definitions}, True

    def _schema(self, annotation: TypeForm, mode: Literal["validation", "serialization"], what: str) -> Schema:
        """Return pydantic's schema of a type, without the titles that only repeat names."""
        with self._checking(what):
            schema = TypeAdapter[Any](annotation).json_schema(mode=mode, schema_generator=_Plain)
        if mode == "validation" and "'discriminator'" in repr(schema):
            _require_tags(schema)
        for name, definition in schema.get("$defs", {}).items():
            if is_object(definition) and definition.get("title") == name:
                del definition["title"]
        return schema

    @contextmanager
    def _checking(self, what: str) -> Generator[None]:
        """Raise `BadFunction` with one line for an error about a type."""
        try:
            yield
        except SchemaError as error:  # such as a pattern with look-ahead, which the engine of pydantic lacks
            reason = str(error).rpartition("\n")[2].strip().removeprefix("error: ")
            fix = "simplify the type, or check the value in the function and raise ToolError"
            raise self.bad(f"pydantic cannot validate {what}: {reason}", fix) from None
        except (PydanticUserError, NameError, TypeError, AttributeError, SyntaxError) as error:
            reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".").removeprefix(_NO_SCHEMA)
            if isinstance(error, NameError):
                fix = f"import {error.name}, or define it before the function"
                raise self.bad(f"{what} cannot be read: {reason}", fix) from None
            fix = "use a type that JSON can express, such as str, a dataclass or a pydantic model"
            raise self.bad(f"JSON cannot express the type of {what}: {reason}", fix) from None

    def _advise(self, problem: str, fix: str) -> None:
        self.advice.append(f"{place_of(self.function)}: {self.name}: {problem}; {fix}")

    def bad(self, problem: str, fix: str) -> BadFunction:
        """Return the error for this function, with its file and line."""
        return BadFunction(f"{self.name}: {problem}", fix, place_of(self.function))


class _Plain(GenerateJsonSchema):
    """JSON Schema without titles for members, and without warnings about defaults that JSON cannot express."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: object) -> bool:
        """Return False: a title would repeat the member's name."""
        return False

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """Return the schema of an object; integers as names have one form, so that no two names are equal."""
        names = {"propertyNames": {"pattern": _INTEGER}} if schema.get("keys_schema", {}).get("type") == "int" else {}
        return super().dict_schema(schema) | names

    def encode_default(self, dft: object) -> Any:
        """Return a default in JSON form; pydantic leaves a default out that JSON cannot express."""
        try:
            return parse_json(to_json(to_jsonable_python(dft, by_alias=True)))
        except ValueError as error:  # such as an infinity, or bytes that are no UTF-8
            raise PydanticSerializationError(str(error)) from None


def _require_tags(schema: Schema) -> None:
    """Require the discriminator in the alternatives of each discriminated union, whether or not it has a default."""
    from mcp_bindgen.json_schema.keywords import objects  # few functions take discriminated unions

    definitions: Mapping[str, Schema] = schema.get("$defs", {})
    for node in objects(schema):
        about, alternatives = node.get("discriminator"), node.get("oneOf")
        name = about.get("propertyName") if is_object(about) else None
        for one in alternatives if name is not None and is_array(alternatives) else ():
            target = definitions.get(one.get("$ref", "").removeprefix("#/$defs/"), one)
            if name not in target.get("required", ()):
                one["required"] = [*one.get("required", ()), name]


def _known(**members: object) -> dict[str, Any]:
    """Return the members that are not empty."""
    return {name: value for name, value in members.items() if value}


def _own(annotation: TypeForm, attribute: str) -> Any:
    """Return an attribute that `Annotated` gives a type, such as its description; else None."""
    extra = getattr(annotation, "__metadata__", ())
    return next(filter(None, (getattr(about, attribute, None) for about in reversed(extra))), None)


def _line(text: str | None) -> str:
    """Return a docstring section in one line."""
    return " ".join((text or "").split())


def _is_record(schema: Schema, definitions: Mapping[str, Schema]) -> bool:
    """Return True if a schema describes an object, directly or by reference."""
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    return schema.get("type") == "object" or definitions.get(name, {}).get("type") == "object"


def _is_protocol(annotation: TypeForm) -> bool:
    """Return True if an annotation names types of the protocol: content blocks, or a whole result."""
    forms = get_args(annotation)
    if isinstance(annotation, type) and not forms:
        return issubclass(annotation, Model | File)
    return any(_is_protocol(form) for form in forms)
