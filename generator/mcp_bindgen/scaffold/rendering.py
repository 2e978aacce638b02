"""Render the templates of scaffolds, with the filters and rules of the emitters."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from jinja2 import TemplateNotFound

from mcp_bindgen.emit.python.environment import environment, style

from .project import Names

_OLD = {"Union": "UP007", "Optional": "UP045"}
TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, folder: Path = TEMPLATES, /, **values: object) -> str:
    """Return the text of the `template` in a folder with `values` filled in."""
    return environment(folder).get_template(template).render(**values)


def macros(template: str, **values: object) -> Mapping[str, Callable[[], str]]:
    """Return the macros of `template`, which take no arguments but see `values`; none without a template.

    Args:
        template: Its name.
        values: What it can name.
    """
    try:
        found = environment(TEMPLATES).get_template(template)
    except TemplateNotFound:
        return {}
    module = found.make_module(values)
    return {name: cast(Callable[[], str], macro) for name, macro in vars(module).items() if callable(macro)}


def module(template: str, folder: Path = TEMPLATES, /, **values: object) -> str:
    """Return the formatted text of a Python module; the names of the project are among the `values`."""
    names = values["names"]
    assert isinstance(names, Names)
    return style(render(template, folder, **values), names.package)


def noted(code: str) -> str:
    """Return `code`, with a note for ruff if a model contains itself: `|` does not take quoted names."""
    imports = [node for node in ast.parse(code).body if isinstance(node, ast.ImportFrom)]
    names = {alias.name for node in imports for alias in node.names}
    rules = [rule for name, rule in _OLD.items() if name in names]
    return f"# ruff: noqa: {', '.join(['RUF100', *rules])}\n{code}" if rules else code
