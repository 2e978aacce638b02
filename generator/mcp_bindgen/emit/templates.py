"""Jinja for the templates of all emitters of code."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError, TemplateSyntaxError

from mcp_bindgen.spec import BadInput


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


def render(own: Path, template: str, templates: Path | None, page: str, /, **values: object) -> str:
    """Return the text of a template with `values` filled in.

    Args:
        own: Folder of the emitter.
        template: Name of the template.
        templates: Folder of templates of a user, which take the place of those in `own`.
        page: Page of the documentation that lists the variables.
        values: The variables of the template.

    Raises:
        BadInput: A template of the user cannot be rendered.
    """
    try:
        return environment(own, templates).get_template(template).render(**values)
    except TemplateError as error:
        if templates is None:
            raise
        place = f"{error.name or template} line {error.lineno}" if isinstance(error, TemplateSyntaxError) else template
        raise BadInput(f"{place}: {error.message}", file=templates, fix=f"{page} lists the variables") from None
