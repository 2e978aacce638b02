"""Typed members of `_meta`: reading, writing beside other members, and validation."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from mcp_bindgen.extension_abi import MetaKey
from mcp_bindgen.v2026_07_28 import types as mcp

HINT: MetaKey[mcp.Icon] = MetaKey("com.example/hint", mcp.Icon)
TOOL = mcp.Tool(name="chart", input_schema=mcp.ToolInputSchema(), meta={"other": [1]})


def test_a_meta_value_is_read_back_and_keeps_the_other_members() -> None:
    told = HINT.put(TOOL, mcp.Icon(src="https://example.com/i.png", mime_type="image/png"))
    assert HINT.read(told) == mcp.Icon(src="https://example.com/i.png", mime_type="image/png")
    hint = {"src": "https://example.com/i.png", "mimeType": "image/png"}
    assert told.model_dump()["_meta"] == {"other": [1], "com.example/hint": hint}
    assert isinstance(told, mcp.Tool)
    assert HINT.read(TOOL) is None
    assert HINT.read(mcp.Tool(name="bare", input_schema=mcp.ToolInputSchema())) is None


def test_an_invalid_meta_value_is_refused_when_it_is_read() -> None:
    broken = mcp.Tool.model_validate({**TOOL.model_dump(), "_meta": {"com.example/hint": {"src": 1}}})
    with pytest.raises(ValidationError, match="src"):
        HINT.read(broken)


def test_scalars_are_stored_in_meta_unchanged() -> None:
    flag: MetaKey[bool] = MetaKey("com.example/flag", bool)
    assert flag.put(TOOL, False).model_dump()["_meta"] == {"other": [1], "com.example/flag": False}
    assert flag.read(flag.put(TOOL, False)) is False
