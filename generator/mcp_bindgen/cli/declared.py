"""Declare capabilities that a client lacks, to see everything that a server offers."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mcp_bindgen.runtime.model.base import wire_name
from mcp_bindgen.spec import BadInput


def capability_names(text: str, kinds: Iterable[Any]) -> tuple[str, ...]:
    """Return the client capabilities in a list.

    Args:
        text: The list, `NAME,NAME`.
        kinds: The client classes of all revisions.

    Raises:
        BadInput: No revision has a capability of that name.
    """
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    known = {name for kind in kinds for name in _capabilities(kind)} if names else set[str]()
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1) or sorted(known)
            raise BadInput(f"--declare {name}: clients have no such capability", fix=f"there is {', '.join(near)}")
    return names


def declaring(kind: Any, names: Sequence[str]) -> Any:
    """Return a client class that also declares the named capabilities, as far as its revision has them."""
    declared: dict[str, Any] = {name: {} for name in names if name in _capabilities(kind)}
    if not declared:
        return kind

    def extra_capabilities(client: Any) -> Mapping[str, Any]:
        return declared

    return type(kind.__name__, (kind,), {"extra_capabilities": extra_capabilities})


def _capabilities(kind: Any) -> set[str]:
    fields: Mapping[str, Any] = kind.dispatcher.revision.types.ClientCapabilities.model_fields
    return {field.alias or wire_name(name) for name, field in fields.items()}
