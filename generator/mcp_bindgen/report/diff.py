"""Report of `diff` in all forms."""

from __future__ import annotations

from functools import partial

from mcp_bindgen.diff.accept import Accepted

from .comparison import Places, document, without_lines
from .render import Report


def comparison_report(found: Accepted, *, witness: bool = False, places: Places = without_lines) -> Report:
    """Return the report of comparisons in all forms; the arguments are as for `document`."""

    def html() -> str:
        from .comparison_html import comparison_html  # its templates take time to load

        return comparison_html(found.comparisons, found.walked)

    def record() -> object:
        from .comparison_json import record

        return record(found)

    shown = partial(document, found.comparisons, witness=witness, walked=found.walked, places=places)
    return Report(shown, record, html)
