"""Jinja for the templates of all emitters of code."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


@cache
def environment(own: Path, templates: Path | None = None) -> Environment:
    """Return the environment of a folder of templates; undefined names are errors.

    Args:
        own: Folder of the emitter.
        templates: Folder of a user, whose templates take the place of those in `own`.
    """
    return Environment(
        loader=FileSystemLoader([templates, own] if templates is not None else own),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - the output is code, no HTML
    )
