"""Types of the model as TypeScript."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mcp_bindgen.ir.model import (
    AnyValue,
    Array,
    Const,
    Extension,
    Map,
    Object,
    Ref,
    Scalar,
    Tuple,
    Type,
    Union,
    is_implied,
)

from .names import text

_SCALARS = {"integer": "number"}


def meta_types(extension: Extension) -> dict[str, Type]:
    """Return key of `_meta` -> type of its value; a key may have several types, for `_meta` of several definitions."""
    found: dict[str, tuple[Type, ...]] = {}
    for one in extension.meta_keys:
        found[one.key] = (*found.get(one.key, ()), one.type)
    return {key: Union(types) for key, types in found.items()}


def type_text(type: Type, names: Mapping[str, str], indent: str | None = "") -> str:
    """Return a type other than an object as an expression.

    Args:
        type: The type.
        names: Definition -> name of its type.
        indent: Start of the lines of a long union; None for one line.
    """

    def inner(part: Type) -> str:
        return type_text(part, names, indent)

    def atom(part: Type) -> str:
        text = inner(part)
        return f"({text})" if "|" in text else text

    match type:
        case AnyValue():
            return "unknown"
        case Scalar(kind):
            return _SCALARS.get(kind, kind)
        case Tuple(prefix=prefix, least=least, rest=rest):
            items = [*map(inner, prefix[:least]), *(f"{atom(item)}?" for item in prefix[least:])]
            return f"[{', '.join(items if rest is None else [*items, f'...{atom(rest)}[]'])}]"
        case Array(items):
            return f"{atom(items)}[]"
        case Map(values):
            return f"{{ [member: string]: {inner(values)} }}"
        case Ref(name):
            return names[name]
        case Const() | Union():
            texts = [*dict.fromkeys(_alternatives(type, names, indent))]
            text = " | ".join(texts) or "never"
            return text if len(text) <= 90 or indent is None else f"\n{indent}  | ".join(["", *texts])
        case Object():
            raise AssertionError("inline objects are definitions")


def index_text(type: Object, names: Mapping[str, str]) -> str:
    """Return the type of members without a name; empty for an object that states nothing about them.

    A type that only leaves open which members an object has gets none, so that compilers find misspelled members.
    """
    if type.extra is None or is_implied(type.extra):
        return ""
    parts = (type.extra, *(field.type for field in type.fields))
    texts = [text for part in parts for text in _alternatives(part, names)]
    if "unknown" in texts:
        return "unknown"
    optional = ["undefined"] if any(not field.required for field in type.fields) else []
    return " | ".join(dict.fromkeys([*texts, *optional]))


def _alternatives(type: Type, names: Mapping[str, str], indent: str | None = "") -> Iterator[str]:
    """Yield the alternatives of a type, those of unions inside of unions included."""
    match type:
        case Const(values):
            yield from map(text, values)
        case Union(members):
            for member in members:
                yield from _alternatives(member, names, indent)
        case _:
            yield type_text(type, names, indent)
