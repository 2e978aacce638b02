"""Write Python expressions that build values of the model's types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_bindgen.ir.examples import Code, Unfit, example, fits
from mcp_bindgen.ir.model import AnyValue, Array, Const, Field, Map, Object, Ref, Scalar, Type, Union
from mcp_bindgen.spec.json import is_array, is_object

from .lowered import PythonProtocol


def expression(protocol: PythonProtocol, type: Type, value: Any, prefix: str = "mcp.") -> str:
    """Return the Python expression for `value` of a type; not formatted.

    Args:
        protocol: The definitions.
        type: The type of the value.
        value: JSON, in which `Code` may stand for values.
        prefix: Prefix of the names of classes.

    Raises:
        Unfit: `value` is none of the type's.
    """
    if isinstance(value, Code):
        return value.text
    if not fits(protocol, type, value):
        raise Unfit(f"{value!r} is no {type}")
    match type:
        case Ref(name):
            inner = protocol.definitions[name].type
            if protocol.class_of(type) is not None:
                return _construct(protocol, name, value, prefix)
            return expression(protocol, inner, value, prefix)
        case Array(items):
            return f"[{', '.join(expression(protocol, items, item, prefix) for item in value)}]"
        case Map(values):
            entries = (f"{_literal(key)}: {expression(protocol, values, item, prefix)}" for key, item in value.items())
            return f"{{{', '.join(entries)}}}"
        case Union(members):
            chosen = next(member for member in members if fits(protocol, member, value))
            return expression(protocol, chosen, value, prefix)
        case Object():
            raise Unfit("an object has a name; refer to it")
        case Scalar("integer"):
            return _literal(int(value))  # in JSON, 2.0 is an integer
        case AnyValue() | Scalar() | Const():
            return _literal(value)


def sample(protocol: PythonProtocol, name: str, given: Mapping[str, Any], prefix: str) -> str:
    """Return the expression of a small value of a class, with some members; other required members get examples."""
    return expression(protocol, Ref(name), {**given, **example(protocol, Ref(name)), **given}, prefix)


def _construct(protocol: PythonProtocol, name: str, value: Mapping[str, Any], prefix: str) -> str:
    """Return a call of a class; members without a keyword are read as they come on the wire."""
    type = protocol.resolve(Ref(name))
    assert isinstance(type, Object)
    if any(type.field(wire) is None for wire in value):
        filled = {one.wire: one.default for one in type.fields if _is_constant(one) and one.wire not in value}
        return f"{prefix}{name}.model_validate({_literal({**filled, **value})})"
    given = [field for field in type.fields if field.wire in value]
    shown = [field for field in given if not (_is_constant(field) and value[field.wire] == field.default)]
    shown.sort(key=lambda field: list(value).index(field.wire))
    arguments = (
        f"{protocol.attribute(Ref(name), field.wire)}={expression(protocol, field.type, value[field.wire], prefix)}"
        for field in shown
    )
    return f"{prefix}{name}({', '.join(arguments)})"


def _literal(value: Any) -> str:
    if isinstance(value, Code):
        return value.text
    if is_object(value):
        return f"{{{', '.join(f'{_literal(name)}: {_literal(item)}' for name, item in value.items())}}}"
    if is_array(value):
        return f"[{', '.join(map(_literal, value))}]"
    is_plain = isinstance(value, str) and value.isprintable() and not {*value} & {*'"\\'}
    return f'"{value}"' if is_plain else repr(value)


def _is_constant(field: Field) -> bool:
    """Return whether a constructor fills the field in; any other default only gives absence a meaning."""
    return field.required and field.default is not None
