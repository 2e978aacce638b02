"""Derive a contract from the functions of a module: one tool for each that is public.

Names, types and defaults come from the signature, words from the docstring. pydantic says what a type looks like in
JSON, so a schema refers only to its own `$defs`.

What a function returns decides about `outputSchema`. An object is described as it is; text, or nothing, is plain
content and has none. Any other value stands under `result` in an object, as structured content had to be an object in
all revisions up to 2025-11-25.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

import docstring_parser
from pydantic import Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_jsonable_python

from mcp_bindgen.runtime.core.model import Model
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.json import is_object

Function: TypeAlias = Callable[..., Any]
Schema: TypeAlias = dict[str, Any]

RESULT = "result"
"""The member under which a value stands that is no object."""

_CONTEXT = ("ctx", "context")
_UNFIT = {
    inspect.Parameter.VAR_POSITIONAL: ("*{} takes any number of arguments", "give it a name and a list type"),
    inspect.Parameter.VAR_KEYWORD: ("**{} takes arguments of any name", "name them, or take one dict"),
    inspect.Parameter.POSITIONAL_ONLY: ("{} has no name for its caller", "remove the / behind it"),
}
_MISSING: Any = inspect.Parameter.empty


def document_of_module(name: str, path: Path | None = None) -> dict[str, Any]:
    """Return the contract document of a module.

    Args:
        name: Its import name.
        path: The folder to import it from; by default the current one.

    Raises:
        BadInput: It cannot be imported, has no public function, or one that no contract can describe; the error names
            file, line and what to do.
    """
    module = _imported(name, path or Path())
    functions = list(_public(module))
    if not functions:
        raise BadInput(
            f"the module {name!r} has no public function", file=module.__file__, fix="write one, or list it in __all__"
        )
    return {"tools": [tool_of(function, wire) for wire, function in functions]}


def tool_of(function: Function, name: str = "") -> dict[str, Any]:
    """Return the entry of `tools/list` for a function; raise `BadInput` when there can be none.

    Args:
        function: The function, `def` or `async def`.
        name: What the tool is called; by default like the function.
    """
    return _Tool(name or function.__name__, function).entry()


# --- finding functions ----------------------------------------------------------------------------------------


def _imported(name: str, path: Path) -> ModuleType:
    """Return the module; what it prints goes to stderr, as stdout may be for the contract."""
    if not path.is_dir():
        raise BadInput(f"{path} is no folder", fix="give --path the folder that the module is in")
    folder = str(path.resolve())
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        with redirect_stdout(sys.stderr):
            return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise BadInput(f"there is no module {error.name!r} in {path}", fix="see --path") from None
        raise _unimportable(name, error) from None
    except BaseException as error:  # whatever somebody's module does, `sys.exit` included
        raise _unimportable(name, error) from None
    finally:
        with suppress(ValueError):
            sys.path.remove(folder)


def _unimportable(name: str, error: BaseException) -> BadInput:
    """Describe why a module cannot be imported, with the last of its lines that ran."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_theirs(frame.filename)]
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
    if isinstance(error, SyntaxError) and error.filename:
        return BadInput(f"{name} is no Python: {error.msg}", file=f"{error.filename}:{error.lineno}")
    words = f"{type(error).__name__}: {error}".rstrip(": ")
    return BadInput(f"importing {name} failed: {words}", file=place)


def _is_theirs(file: str) -> bool:
    return not file.startswith("<") and file != __file__ and Path(importlib.__file__).parent not in Path(file).parents


def _public(module: ModuleType) -> Iterator[tuple[str, Function]]:
    """Return the functions that a module offers: those in `__all__`, else its own without a leading underscore."""
    listed = getattr(module, "__all__", None)
    for name in listed if listed is not None else list(vars(module)):
        value = getattr(module, name, None)
        if inspect.isfunction(value) and (listed is not None or (not name.startswith("_") and _is_own(value, module))):
            yield name, value


def _is_own(function: Function, module: ModuleType) -> bool:
    """Return whether a function was written down in a module with `def`."""
    return function.__module__ == module.__name__ and function.__name__.isidentifier()


# --- one function ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tool:
    """A function that becomes a tool."""

    name: str
    function: Function

    def entry(self) -> dict[str, Any]:
        """Name, description and schemas."""
        if inspect.isgeneratorfunction(self.function) or inspect.isasyncgenfunction(self.function):
            raise self.bad("yields values one by one", "return a list")
        with self.checking("the annotations"):
            hints = get_type_hints(self.function, include_extras=True)
        words = docstring_parser.parse(inspect.getdoc(self.function) or "")
        returns = _line(words.returns.description) if words.returns is not None else ""
        output = self.output(hints.get("return", _MISSING))
        told = [words.description, None if output is not None or not returns else f"Returns: {returns}"]
        description = "\n\n".join(text.strip() for text in told if text)
        entry: dict[str, Any] = {"name": self.name, **({"description": description} if description else {})}
        entry["inputSchema"] = self.input(hints, {word.arg_name: _line(word.description) for word in words.params})
        if output is not None:
            entry["outputSchema"] = {**output, **({"description": returns} if returns else {})}
        return entry

    def input(self, hints: Mapping[str, Any], words: Mapping[str, str]) -> Schema:
        """Return the schema of the arguments: an object with a property for each parameter."""
        fields: dict[str, Any] = {}
        for name, parameter in inspect.signature(self.function).parameters.items():
            if name in _CONTEXT and _is_context(hints.get(name)):
                continue
            if parameter.kind in _UNFIT:
                problem, fix = _UNFIT[parameter.kind]
                raise self.bad(problem.format(name), fix)
            if name not in hints:
                raise self.bad(f"the parameter {name} has no type", f"write {name}: str, or whatever it is")
            default = self.default(name, hints[name], parameter.default)
            self.schema(hints[name], "validation", f"the parameter {name}")
            about = Field(default, alias=name, description=_own_words(hints[name]) or words.get(name) or None)
            fields[f"p{len(fields)}"] = (hints[name], about)  # any name will do that pydantic has no use for
        with self.checking("the parameters"):
            model = create_model("Arguments", **fields)
        schema = self.schema(model, "validation", "the parameters")
        found: Schema = {"type": "object", "properties": schema.get("properties", {})}
        return found | {key: schema[key] for key in ("required", "$defs") if key in schema}

    def default(self, name: str, annotation: Any, default: Any) -> Any:
        """Return the default as pydantic takes it: `...` where there is none."""
        if default is _MISSING:
            return ...
        with self.checking(f"the parameter {name}"):
            adapter: TypeAdapter[Any] = TypeAdapter(annotation)
            try:
                adapter.validate_python(default)
            except ValidationError:
                fix = f"write {name}: ... | None = None" if default is None else "correct the default or the type"
                raise self.bad(f"the default of {name}, {default!r}, is not of its type", fix) from None
        return default

    def output(self, annotation: Any) -> Schema | None:
        """Return the schema of the structured content; `None` where there is only text, or content as it is."""
        if annotation is _MISSING:
            raise self.bad("does not say what it returns", "write -> str, -> None or whatever it is")
        if annotation in (None, type(None), str, bytes, Any, object) or _is_protocol(annotation):
            return None
        schema = self.schema(annotation, "serialization", "what it returns")
        definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
        if _is_record(schema, definitions.get("$defs", {})):
            return {"type": "object", **schema, **definitions}
        schema.pop("title", None)
        return {"type": "object", "properties": {RESULT: schema}, "required": [RESULT], **definitions}

    def schema(self, annotation: Any, mode: Any, what: str) -> Schema:
        """Return pydantic's schema of a type, without the titles that only repeat names."""
        with self.checking(what):
            adapter: TypeAdapter[Any] = TypeAdapter(annotation)
            schema = adapter.json_schema(mode=mode, schema_generator=_Plain)
        for name, definition in schema.get("$defs", {}).items():
            if is_object(definition) and definition.get("title") == name:
                del definition["title"]
        return schema

    @contextmanager
    def checking(self, what: str) -> Generator[None]:
        """Turn what is wrong with a type into one line."""
        try:
            yield
        except (PydanticUserError, NameError, TypeError, AttributeError, SyntaxError) as error:
            reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
            raise self.bad(f"{what} cannot be put as JSON Schema: {reason}", "use types that JSON has") from None

    def bad(self, problem: str, fix: str) -> BadInput:
        """Return the error for this function, with its file and line."""
        inner = inspect.unwrap(self.function)
        code = inner.__code__
        return BadInput(f"{self.name}: {problem}", file=f"{code.co_filename}:{code.co_firstlineno}", fix=fix)


class _Plain(GenerateJsonSchema):
    """JSON Schema without titles for members, and silent about defaults that JSON cannot say."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return no: a title would be the member's name once more."""
        return False

    def encode_default(self, dft: Any) -> Any:
        """Return a default as JSON has it."""
        return to_jsonable_python(dft, by_alias=True)


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
