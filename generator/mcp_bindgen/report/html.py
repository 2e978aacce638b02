"""HTML renderer: one page that needs no network, no fonts and no library.

Names and words of schemas are escaped wherever they appear. The content security policy allows only our script and our
styles, by their hashes.
"""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from mcp_bindgen.spec.errors import printable

from .document import Document, Level, runs, unmarked

_TEMPLATES = Path(__file__).parent / "templates"
_LEVELS = {Level.ERROR: "breaking", Level.WARNING: "risky", Level.NOTE: "info"}
_OUTCOMES = {Level.ERROR: "cannot_talk", Level.WARNING: "limited", Level.NOTE: "works"}


def html(document: Document) -> str:
    """Return a document as an HTML page."""
    return page("document.html.jinja", document=document, levels=_LEVELS, outcomes=_OUTCOMES)


def page(template: str, **values: Any) -> str:
    """Return the page of a template."""
    script, style = _source("report.js"), _source("report.css")
    shared = {"script": script, "style": style, "policy": _policy(script, style), "json": _json, "marked": marked}
    text = _environment().get_template(template).render(**values, **shared, unmarked=unmarked)
    return printable(text, keep="\n")  # halves of surrogate pairs have no encoding, other characters change the order


def marked(text: str) -> Markup:
    """Return a marked text as HTML."""
    tags = {"code": Markup("<code>{}</code>"), "strong": Markup("<b>{}</b>"), "plain": Markup("{}")}
    return Markup().join(tags[kind].format(part) for kind, part in runs(text))


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _source(name: str) -> Markup:
    """Return the script or the styles, which need no escapes."""
    return Markup((_TEMPLATES / name).read_text("utf-8"))  # noqa: S704


def _policy(script: str, style: str) -> str:
    """Return the content security policy."""
    hashes = [b64encode(sha256(source.encode()).digest()).decode() for source in (script, style)]
    rules = ("default-src 'none'", "script-src 'sha256-{}'", "style-src 'sha256-{}'", "img-src data:")
    return "; ".join((*rules, "base-uri 'none'", "form-action 'none'")).format(*hashes)


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
