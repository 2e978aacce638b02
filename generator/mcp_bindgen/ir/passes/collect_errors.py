"""List the error codes of the revision."""

from __future__ import annotations

from dataclasses import replace

from mcp_bindgen.spec.revisions import has_reached

from ..model import ErrorCode, Type
from .build_state import BuildState


def collect_errors(state: BuildState) -> BuildState:
    """Fill in the error codes: constants of error definitions, and the codes of `semantics.toml`."""
    errors: dict[int, ErrorCode] = {}
    for origin in ("", *(extension.id for extension in state.source.extensions)):
        for name, entry in state.source.facts(origin)["errors"].items():
            if not _is_past(state.source.revision, until := entry.get("until", "")):
                instead = entry.get("instead", "")
                error = ErrorCode(name, entry["code"], None, entry["doc"], until, instead, origin)
                errors.setdefault(entry["code"], error)
    for definition in sorted(state.definitions.values(), key=lambda one: one.origin):
        code = _code(definition.type, state)
        if code is None or definition.inline or (code in errors and definition.origin != errors[code].origin):
            continue
        if code in errors:
            errors[code] = replace(errors[code], definition=definition.name)
        else:
            name = definition.name.removesuffix("Error") or definition.name
            errors[code] = ErrorCode(name, code, definition.name, definition.doc, origin=definition.origin)
    return replace(state, errors=tuple(errors[code] for code in sorted(errors)))


def _is_past(revision: str, until: str) -> bool:
    """Return True if `revision` is later than `until`."""
    return until != "" and revision != until and has_reached(revision, until)


def _code(type: Type, state: BuildState) -> int | None:
    """Return the constant of `code`, or of `error.code` in the definition of a whole error response."""
    error = state.field_of(type, "error")
    fields = [state.field_of(part, "code") for part in (type, error.type if error is not None else None)]
    values = [field.constant for field in fields if field is not None]
    return next((value for value in values if isinstance(value, int) and not isinstance(value, bool)), None)
