"""Ask users in the words of another revision."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from mcp_bindgen.runtime.model.json_types import is_array, is_object

from ..edits import Say


def titles_as_names(schema: Any, say: Say) -> Any:
    """Return a choice between values with titles as `enum` and `enumNames`."""
    choices = schema["oneOf"]
    if not is_array(choices) or not all(is_object(one) and "const" in one and "title" in one for one in choices):
        return schema
    if any(one.keys() - {"const", "title"} for one in choices):
        say.lost()
    del schema["oneOf"]
    return {**schema, "enum": [one["const"] for one in choices], "enumNames": [one["title"] for one in choices]}


def with_id(params: Any, say: Say) -> Any:
    """Give a visit to a URL an id, unless it has one."""
    if is_object(params) and not isinstance(params.get("elicitationId"), str):
        params["elicitationId"] = str(uuid4())
    return params
