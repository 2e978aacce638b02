"""Shorten completions."""

from __future__ import annotations

from typing import Any

from mcp_bindgen.runtime.model.json_types import is_array, is_object

from ..edits import Say

MOST = 100
"""The number of values that later revisions take at most."""


def first_values(completion: Any, say: Say) -> Any:
    """Keep as many values as may be sent, and say that there are more."""
    values = completion.get("values") if is_object(completion) else None
    if is_array(values) and len(values) > MOST:
        say.lost()
        completion.update(values=values[:MOST], hasMore=True)
        completion.setdefault("total", len(values))
    return completion
