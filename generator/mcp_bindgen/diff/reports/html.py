"""Render the report as one HTML page that needs nothing else: no network, no fonts, no library.

Schemas come from anywhere, so their names and words are only ever text: everything is escaped, no data goes into the
script or the styles, and the page's content security policy admits just these two, by their hashes.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import cache, partial
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..commits import Walked
from ..finding import Comparison, Impact, Message, Plane, Severity
from .page import Step
from .terminal import plain
from .words import OUTCOMES, about_words, place, telling, walked_in_words

TEMPLATES = Path(__file__).parent / "templates"

IMPACTS = {
    Impact.BREAKS: ("breaks", "the receiver rejects what the sender may say"),
    Impact.RISKY: ("risky", "accepted, but perhaps not understood as it was meant"),
    Impact.IGNORED: ("ignored", "the receiver does not know it and may ignore it"),
    Impact.SAFE: ("safe", "both sides understand each other as before"),
    Impact.NONE: ("not visible", "nothing of it is on the wire"),
}
SEVERITIES = {severity: severity.name.lower() for severity in reversed(Severity)}
PLANES = {Plane.WIRE: "on the wire", Plane.SOURCE: "in generated code", Plane.DOC: "in documentation"}


def html(compared: Comparison | Sequence[Comparison], walked: Walked | None = None) -> str:
    """Return the page about one comparison, or about the steps of a chain of revisions in their order.

    Args:
        compared: What to report.
        walked: The range of commits that they are from, if they are.
    """
    comparisons = telling([compared] if isinstance(compared, Comparison) else list(compared), walked)
    taken: set[str] = set()
    steps = [
        Step(comparison, f"{number}." if len(comparisons) > 1 else "", taken)
        for number, comparison in enumerate(comparisons, start=1)
    ]
    names = {message.method for step in steps for entry in step.entries for message in entry.about}
    methods = {name: number for number, name in enumerate(sorted(names))}
    script, style = _source("report.js"), _source("report.css")
    values = {
        "first": comparisons[0].old.revision,
        "last": comparisons[-1].new.revision,
        "steps": steps,
        "methods": methods,
        "tokens": partial(_tokens, methods=methods),
        "walked": walked,
        "walked_in_words": walked_in_words,
        "plain": plain,
        "script": script,
        "style": style,
        "policy": _policy(script, style),
        "outcomes": {outcome: words.capitalize() for outcome, words in OUTCOMES.items()},
        "impacts": IMPACTS,
        "severities": SEVERITIES,
        "planes": PLANES,
        "about_words": about_words,
        "json": _json,
        "prose": _prose,
        "place": place,
    }
    page = _environment().get_template("report.html.jinja").render(values)
    return page.encode("utf-8", "ignore").decode()  # prose may hold halves of characters, which no file can


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _source(name: str) -> Markup:
    """Return a file of ours that goes into every page as it is."""
    return Markup((TEMPLATES / name).read_text("utf-8"))  # noqa: S704


def _policy(script: str, style: str) -> str:
    """Return the content security policy: nothing is loaded, and only our script and our styles count."""
    hashes = [b64encode(sha256(source.encode()).digest()).decode() for source in (script, style)]
    rules = ("default-src 'none'", "script-src 'sha256-{}'", "style-src 'sha256-{}'", "img-src data:")
    return "; ".join((*rules, "base-uri 'none'", "form-action 'none'")).format(*hashes)


def _tokens(messages: Iterable[Message], methods: dict[str, int]) -> str:
    """Return sender and method of each message for the filters, in short: `c3 s14`."""
    return " ".join(sorted({f"{message.sender[0]}{methods[message.method]}" for message in messages}))


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _prose(text: str) -> Markup:
    """Return words with what stands in backticks as code."""
    parts = text.split("`")
    code, plain = Markup("<code>{}</code>"), Markup("{}")
    if len(parts) % 2 == 0:  # one backtick has no partner
        return plain.format(text)
    return Markup().join((code if index % 2 else plain).format(part) for index, part in enumerate(parts))
