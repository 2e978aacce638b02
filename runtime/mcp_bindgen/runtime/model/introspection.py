"""Signatures, errors and JSON Schemas of models for people. Nothing here is loaded before one is asked for."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from functools import cache
from inspect import Parameter, Signature, cleandoc, getsource
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast, get_type_hints

from pydantic import BaseModel, GetJsonSchemaHandler, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import InitErrorDetails, PydanticCustomError


def signature(kind: type[BaseModel]) -> Signature:
    """Return the signature of a constructor; its `**` parameter, if any, stands for fields by their Python names."""
    parameters = list(Signature.from_callable(kind.__init__).parameters.values())[1:]
    if parameters and parameters[-1].kind is Parameter.VAR_KEYWORD:
        named = {one.name for one in parameters[:-1]}
        del parameters[-1]
        for name, field in kind.__pydantic_fields__.items():
            if name not in named:
                default = Parameter.empty if field.is_required() else field.get_default()
                parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=field.annotation))
        if kind.model_config.get("extra") == "allow":
            rest = f"members{'_' * ('members' in (named | kind.__pydantic_fields__.keys()))}"
            parameters.append(Parameter(rest, Parameter.VAR_KEYWORD, annotation=Any))
    names = sys.modules.get(kind.__module__, SimpleNamespace()).__dict__
    parameters = [one.replace(annotation=_evaluated(one.annotation, names)) for one in parameters]
    return Signature(parameters, return_annotation=None)


def _evaluated(annotation: object, names: dict[str, Any]) -> object:
    """Return an annotation with the types that its strings name, or as it is if one is unknown."""
    try:
        return get_type_hints(SimpleNamespace(__annotations__={"it": annotation}), names)["it"]
    except (AttributeError, NameError, SyntaxError, TypeError):
        return annotation


def in_python(error: ValidationError, names: Mapping[str, str], hides_input: bool | None) -> ValidationError:
    """Return an error of a constructor with the names of fields, and their wire names where these differ.

    Args:
        error: The error, with names of both kinds.
        names: Wire name -> name of the field.
        hides_input: Whether the text of the error hides the input.
    """
    lines: list[InitErrorDetails] = []
    for problem in error.errors(include_url=False):
        said: Any = problem["msg"]
        steps = problem["loc"]
        for wire, name in names.items():
            if steps[:1] in ((wire,), (name,)) and wire != name:
                steps = (name, *steps[1:])
                said += f" (`{name}` is `{wire}` in JSON)"
        reason = PydanticCustomError(cast(Any, problem["type"]), said, problem.get("ctx"))
        lines.append(InitErrorDetails(type=reason, loc=steps, input=problem["input"]))
    return ValidationError.from_exception_data(error.title, lines, hide_input=bool(hides_input))


def described(kind: type[BaseModel], schema: JsonSchemaValue, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
    """Return the JSON Schema of a model, with the docstrings of its fields as descriptions."""
    members = handler.resolve_ref_schema(schema).get("properties", {})
    bases = [base for base in reversed(kind.__mro__) if base not in (object, BaseModel)]
    texts = {name: text for base in bases for name, text in _docstrings(base).items()}
    for name in kind.model_fields.keys() & texts.keys():
        for key in members.keys() & {name, kind.model_fields[name].alias}:
            members[key].setdefault("description", texts[name])
    return schema


@cache
def _module(name: str) -> Mapping[str, ast.ClassDef]:
    """Return the source of the classes of a module by qualified name; it is read once, for the first JSON Schema."""
    try:
        todo: list[tuple[str, ast.AST]] = [("", ast.parse(getsource(sys.modules[name])))]
    except (KeyError, OSError, SyntaxError, TypeError, ValueError):  # a module without source, or with other source
        return {}
    found: dict[str, ast.ClassDef] = {}
    for prefix, parent in todo:
        for one in ast.iter_child_nodes(parent):
            inner = prefix
            if isinstance(one, ast.ClassDef):
                found[prefix + one.name], inner = one, f"{prefix}{one.name}."
            elif isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = f"{prefix}{one.name}.<locals>."
            todo.append((inner, one))
    return found


def _docstrings(kind: type) -> dict[str, str]:
    """Return the docstrings of the fields of a model."""
    found = _module(kind.__module__).get(kind.__qualname__)
    texts: dict[str, str] = {}
    for pair in pairwise(found.body if found else ()):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = cleandoc(text)
            case _:
                pass
    return texts
