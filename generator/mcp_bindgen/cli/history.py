"""`mcp-bindgen history`: follow one name through all revisions."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from mcp_bindgen.diff.extensions import timelines
from mcp_bindgen.diff.history import History
from mcp_bindgen.diff.history import history as trace
from mcp_bindgen.diff.selectors import find
from mcp_bindgen.diff.source import timeline
from mcp_bindgen.report import Format, Report
from mcp_bindgen.report.history import document, record
from mcp_bindgen.spec import Store

from .options import Folder, Json, Semantics, SeveralSchemaFiles, Strict, facts
from .output import print_report, say_reading


def history(
    subject: Annotated[
        str, typer.Argument(help="A method, a definition, a member of one, or an error code: Tool.annotations")
    ],
    schema: SeveralSchemaFiles = None,
    semantics: Semantics = None,
    folder: Folder = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Report when a name appeared, changed, was renamed and disappeared.

    Names of extensions are followed through the versions of the extension. Schema files and
    printed models come after all revisions.

    Examples:

    `mcp-bindgen history tools/call`

    `mcp-bindgen history Tool.annotations --json`

    `mcp-bindgen history -32042`

    `mcp-bindgen history tasks/get` reports on core, and on the extension that it moved to.

    `mcp-bindgen history CallToolResult --schema draft.json` includes a schema file.
    """
    store = Store(folder, strict=strict)
    protocols = timeline(store, schema or [], facts(store, semantics))
    say_reading(*protocols)
    versions = timelines(subject, store)
    in_core = not versions or any(find(protocol, subject) is not None for protocol in protocols)
    found: list[tuple[str | None, History]] = [(None, trace(subject, protocols))] if in_core else []
    found += [(id, trace(subject, line)) for id, line in versions.items()]
    print_report(Report(partial(document, found), partial(record, found)), Format.JSON if as_json else Format.TEXT)
