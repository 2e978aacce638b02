"""Differences between the document that an implementation read and the document that it wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Literal

from mcp_bindgen.runtime.model.json_types import ABSENT, differences, is_array
from mcp_bindgen.spec.pointer import join

Change = Literal["lost", "lost-null", "added", "changed"]
"""A member is missing, a member that was null is missing, a member is new, a value is another one."""


def parse(text: str) -> Any:
    """Return a JSON document with exact numbers; raise `ValueError` if it is none."""
    return json.loads(text, parse_float=Decimal)


def changes(read: Any, wrote: Any) -> Iterator[tuple[Change, str]]:
    """Yield each difference with its place; documents are equal as in JSON Schema, where 1 is 1.0."""
    for path, old, new in differences(read, wrote):
        longer = [is_array(old) and is_array(new) and len(one) > len(other) for one, other in ((old, new), (new, old))]
        if new is ABSENT or longer[0]:
            yield ("lost-null" if old is None else "lost"), join("", *path)
        else:
            yield ("added" if old is ABSENT or longer[1] else "changed"), join("", *path)
