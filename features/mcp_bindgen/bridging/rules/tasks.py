"""Do without tasks."""

from __future__ import annotations

from typing import Any

from mcp_bindgen.runtime.model.json_types import is_array, is_object

from ..edits import Say


def without_required(tools: Any, say: Say) -> Any:
    """Leave out the tools that run as tasks only."""
    if not is_array(tools):
        return tools
    kept = [tool for tool in tools if not _is_required(tool)]
    if len(kept) < len(tools):
        say.lost()
    return kept


def _is_required(tool: Any) -> bool:
    execution = tool.get("execution") if is_object(tool) else None
    return is_object(execution) and execution.get("taskSupport") == "required"
