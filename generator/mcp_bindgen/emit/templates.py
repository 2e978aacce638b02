"""Jinja for the templates of all emitters of code."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from traceback import extract_tb

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

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


def render(environment: Environment, template: str, templates: Path | None, page: str, /, **values: object) -> str:
    """Return the text of a template with `values` filled in.

    Args:
        environment: The environment of the template.
        template: Name of the template.
        templates: Folder of templates of a user, which take the place of those of the emitter.
        page: Page of the documentation that lists the variables.
        values: The variables of the template.

    Raises:
        BadInput: A template of the user cannot be rendered.
    """
    try:
        return environment.get_template(template).render(**values)
    except Exception as error:  # an expression of a template may raise any
        frames = [
            one for one in extract_tb(error.__traceback__) if templates and templates in Path(one.filename).parents
        ]
        if templates is None or not frames:
            raise
        place = f"{Path(frames[-1].filename).relative_to(templates).as_posix()} line {frames[-1].lineno}"
        reason = error.message if isinstance(error, TemplateError) else error
        raise BadInput(f"{place}: {reason}", file=templates, fix=f"{page} lists the variables") from None
