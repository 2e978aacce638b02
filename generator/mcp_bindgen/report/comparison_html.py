"""HTML page of `diff`: findings with filters, and all definitions of both revisions side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from markupsafe import Markup

from mcp_bindgen.diff.commits import Walked
from mcp_bindgen.diff.finding import Comparison, Impact, Message, Plane, Severity
from mcp_bindgen.spec.errors import printable

from .comparison import OUTCOMES, place_of, reported, walk_summary, words_note
from .comparison_page import Step
from .document import prose
from .html import marked, page

IMPACTS = {
    Impact.BREAKS: ("breaks", "the receiver rejects what the sender may say"),
    Impact.RISKY: ("risky", "accepted, but perhaps not understood as it was meant"),
    Impact.IGNORED: ("ignored", "the receiver does not know it and may ignore it"),
    Impact.SAFE: ("safe", "both sides understand each other as before"),
    Impact.NONE: ("not visible", "nothing of it is on the wire"),
}
SEVERITIES = {severity: severity.name.lower() for severity in reversed(Severity)}
PLANES = {Plane.WIRE: "on the wire", Plane.SOURCE: "in generated code", Plane.DOC: "in documentation"}


def comparison_html(comparisons: Sequence[Comparison], walked: Walked | None = None) -> str:
    """Return the page about comparisons.

    Args:
        comparisons: One comparison, or the steps of a chain in order.
        walked: The range of commits, if the comparisons are its steps.
    """
    comparisons = reported(comparisons, walked)
    taken: set[str] = set()
    steps = [
        Step(comparison, f"{number}." if len(comparisons) > 1 else "", taken)
        for number, comparison in enumerate(comparisons, start=1)
    ]
    names = {message.method for step in steps for entry in step.entries for message in entry.about}
    methods = {name: number for number, name in enumerate(sorted(names))}
    return page(
        "report.html.jinja",
        first=comparisons[0].old.revision,
        last=comparisons[-1].new.revision,
        steps=steps,
        methods=methods,
        tokens=partial(_tokens, methods=methods),
        walked=walked,
        walk_summary=walk_summary,
        printable=_printable,
        outcomes={outcome: words.capitalize() for outcome, words in OUTCOMES.items()},
        impacts=IMPACTS,
        severities=SEVERITIES,
        planes=PLANES,
        words_note=words_note,
        prose=_prose,
        place=place_of,
    )


def _tokens(messages: Iterable[Message], methods: dict[str, int]) -> str:
    """Return sender and method of each message for the filters, in short: `c3 s14`."""
    return " ".join(sorted({f"{message.sender[0]}{methods[message.method]}" for message in messages}))


def _printable(text: str) -> str:
    return printable(" ".join(text.split()))


def _prose(text: str) -> Markup:
    return marked(prose(text))
