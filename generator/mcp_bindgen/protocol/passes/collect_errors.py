"""Lists the error codes of the revision."""

from __future__ import annotations

from dataclasses import replace

from ..model import Const, Definition, ErrorCode, Object, Ref, Type
from .draft import Draft


def collect_errors(draft: Draft) -> Draft:
    """Fills in the error codes: constants of error definitions, and those that `semantics.toml` states in words."""
    errors: dict[int, ErrorCode] = {}
    for name, entry in draft.semantics["errors"].items():
        if draft.source.revision <= entry.get("until", draft.source.revision):
            errors[entry["code"]] = ErrorCode(name, entry["code"], doc=entry["doc"])
    for definition in draft.definitions.values():
        code = _code(definition.type, draft)
        if code is None or definition.hoisted:
            continue
        if code in errors:
            errors[code] = replace(errors[code], definition=definition.name)
        else:
            errors[code] = ErrorCode(definition.name.removesuffix("Error"), code, definition.name, definition.doc)
    return replace(draft, errors=tuple(errors[code] for code in sorted(errors)))


def _code(type: Type, draft: Draft) -> int | None:
    """The constant of `code`, or of `error.code` in the definition of a whole error response."""
    while isinstance(type, Ref):
        definition: Definition = draft.definitions[type.name]
        type = definition.type
    if not isinstance(type, Object):
        return None
    code = type.field("code")
    if code is not None and isinstance(code.type, Const) and isinstance(code.type.values[0], int):
        return code.type.values[0]
    error = type.field("error")
    return _code(error.type, draft) if error is not None else None
