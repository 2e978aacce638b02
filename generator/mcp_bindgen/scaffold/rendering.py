"""Render the templates of scaffolds, with the filters and the rules of those of the emitters."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import cast

from jinja2 import Environment, FileSystemLoader, TemplateNotFound

from mcp_bindgen.emit.environment import docstring, environment, quoted
from mcp_bindgen.emit.imports import prune
from mcp_bindgen.emit.style import style

_GAP = re.compile(r"\n{3,}(?=from \.)")  # is left above imports where a group of others was not used
_OLD = {"Union": "UP007", "Optional": "UP045"}
TEMPLATES = Path(__file__).parent / "templates"


@cache
def _environment() -> Environment:
    return environment().overlay(loader=FileSystemLoader(TEMPLATES), cache_size=50)


def render(template: str, **values: object) -> str:
    """Return the text of `template` with `values` filled in."""
    return _environment().get_template(template).render(docstring=docstring, quoted=quoted, **values)


def macros(template: str, **values: object) -> Mapping[str, Callable[[], str]]:
    """Return the macros of `template`, which take no arguments but see `values`; none without a template.

    Args:
        template: Its name.
        values: What it can name.
    """
    try:
        found = _environment().get_template(template)
    except TemplateNotFound:
        return {}
    module = found.make_module({"docstring": docstring, "quoted": quoted, **values})
    return {name: cast(Callable[[], str], macro) for name, macro in vars(module).items() if callable(macro)}


def module(text: str) -> str:
    """Return the text of a Python module, formatted, without the imports that it does not use."""
    head, future, body = text.rpartition("from __future__ import annotations\n")
    return style(head + future + "\n" + _GAP.sub("\n\n", prune(body)).lstrip())


def noted(code: str) -> str:
    """Return `code`, with a note for ruff where a model contains itself: `|` does not take what is quoted."""
    imports = [node for node in ast.parse(code).body if isinstance(node, ast.ImportFrom)]
    names = {alias.name for node in imports for alias in node.names}
    rules = [rule for name, rule in _OLD.items() if name in names]
    return f"# ruff: noqa: {', '.join(['RUF100', *rules])}\n{code}" if rules else code
