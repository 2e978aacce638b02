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
    """Return the signature of a constructor, which takes fields by their Python names."""
    fields = kind.__pydantic_fields__
    types = get_type_hints(SimpleNamespace(__annotations__={name: fields[name].annotation for name in fields}))
    defaults = {name: Parameter.empty if one.is_required() else one.get_default() for name, one in fields.items()}
    parameters = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=defaults[name], annotation=types[name]) for name in fields
    ]
    if kind.model_config.get("extra") == "allow":
        parameters.append(Parameter(f"members{'_' * ('members' in fields)}", Parameter.VAR_KEYWORD, annotation=Any))
    return Signature(parameters, return_annotation=None)


def in_python(error: ValidationError, names: Mapping[str, str]) -> ValidationError:
    """Return an error of a constructor with the names of fields, and their wire names where these differ.

    Args:
        error: The error, with names of both kinds.
        names: Wire name -> name of the field.
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
    return ValidationError.from_exception_data(error.title, lines)


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
    """Return the source of the classes of a module; it is read once, when a JSON Schema first needs it."""
    try:
        tree = ast.parse(getsource(sys.modules[name]))
    except (OSError, TypeError):  # a module without source
        return {}
    return {one.name: one for one in ast.walk(tree) if isinstance(one, ast.ClassDef)}


def _docstrings(kind: type) -> dict[str, str]:
    """Return the docstrings of the fields of a model."""
    found = _module(kind.__module__).get(kind.__name__)
    texts: dict[str, str] = {}
    for pair in pairwise(found.body if found else ()):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = cleandoc(text)
            case _:
                pass
    return texts
