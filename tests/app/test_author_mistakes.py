"""Check the first error message after each typical mistake of an author (listed in `author_mistakes.toml`)."""

from __future__ import annotations

import importlib.util
import logging
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen.v2025_11_25 import Client

HEAD = "from mcp_bindgen.app import App, Context\n\napp = App('shop')\n"
MISTAKES = tomllib.loads(Path(__file__).with_name("author_mistakes.toml").read_text("utf-8"))["mistake"]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake["name"])
async def test_the_first_message_names_place_cause_and_fix(
    mistake: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "shop.py"
    file.write_text(f"{HEAD}{mistake['source']}\n", "utf-8")
    spec = importlib.util.spec_from_file_location("shop", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "shop", module)
    said = ""
    try:
        spec.loader.exec_module(module)
        async with Client.connect(module.app) as client:
            result = await client.call_tool("find", mistake.get("arguments", {}))
            said = str(result.model_dump()["content"][0]["text"]) if result.is_error else ""
    except (ValueError, TypeError) as error:
        said = str(error)
    logged = [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.WARNING and record.name.startswith("mcp_bindgen")
    ]
    assert [*logged, said][0].replace(f"{tmp_path}/", "") == mistake["message"]
