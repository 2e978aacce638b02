"""Differences between the document that an implementation read and the document that it wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Literal

from mcp_bindgen.spec.json import is_array, is_object
from mcp_bindgen.spec.pointer import join

Change = Literal["lost", "lost-null", "added", "changed"]
"""A member is missing, a member that was null is missing, a member is new, a value is another one."""


def parse(text: str) -> Any:
    """Return a JSON document with exact numbers; raise `ValueError` if it is none."""
    return json.loads(text, parse_float=Decimal)


def changes(read: Any, wrote: Any, pointer: str = "") -> Iterator[tuple[Change, str]]:
    """Yield each difference with its place; documents are equal as in JSON Schema, where 1 is 1.0."""
    if is_object(read) and is_object(wrote):
        for name in {**read, **wrote}:
            place = join(pointer, name)
            if name not in wrote:
                yield ("lost-null" if read[name] is None else "lost"), place
            elif name not in read:
                yield "added", place
            else:
                yield from changes(read[name], wrote[name], place)
    elif is_array(read) and is_array(wrote):
        if len(read) != len(wrote):
            yield ("lost" if len(read) > len(wrote) else "added"), pointer
        for index, (one, other) in enumerate(zip(read, wrote, strict=False)):
            yield from changes(one, other, join(pointer, index))
    elif isinstance(read, bool) != isinstance(wrote, bool) or read != wrote:
        yield "changed", pointer
