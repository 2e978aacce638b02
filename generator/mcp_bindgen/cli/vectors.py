"""`mcp-bindgen vectors`: write conformance vectors, and run them on an implementation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcp_bindgen.report import Format
from mcp_bindgen.report.vectors import vectors_report
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.transaction import Change, put, read, save
from mcp_bindgen.vectors import files_of, json_schema, read_files, vector_files
from mcp_bindgen.vectors.format import vector_paths
from mcp_bindgen.vectors.run import read_expected, write_expected
from mcp_bindgen.vectors.run import run as run_vectors
from mcp_bindgen.vectors.testee import Testee

from .options import (
    Commands,
    Folder,
    JsonSchema,
    Out,
    ReportFormat,
    Revisions,
    SeveralRevisions,
    Timeout,
    Verbose,
    option,
)
from .output import print_json, print_report
from .terminal import StatusLine, say

_NEW = "recorded on first sight"


vectors = Commands(
    "Write conformance vectors, documents with verdicts, and run them on an implementation.\n\n"
    "`mcp-bindgen vectors --out DIR` is short for `mcp-bindgen vectors make --out DIR`.",
    default="make",
)


@vectors.command()
def make(revisions: Revisions = None, out: Out = None, folder: Folder = None, schema: JsonSchema = False) -> None:
    """Write the vectors of revisions and extensions, one file for each definition.

    Vector files below DIR that are no longer made are removed; other files are kept.

    Examples:

    `mcp-bindgen vectors make --out build/vectors`

    `mcp-bindgen vectors 2025-11-25 tasks --out build/vectors`

    `mcp-bindgen vectors --json-schema` prints the JSON Schema of a file.
    """
    if schema == (out is not None):
        raise BadInput("give either --out or --json-schema", fix="as in: mcp-bindgen vectors --out build/vectors")
    if out is None:
        print_json(json_schema())
        return
    if out.exists() and not out.is_dir():
        raise BadInput("is a file, not a folder", file=out, fix="choose another --out")
    with StatusLine("making vectors"):
        files = {path: text.encode() for path, text in files_of(Store(folder), revisions or ()).items()}
    old = {path.relative_to(out).as_posix() for path in vector_paths(out)}
    changes = {name: Change(read(out / name), files.get(name)) for name in sorted({*old, *files})}
    put(out, {name: change for name, change in changes.items() if change.before != change.after})
    count = sum(text.count(b'\n{"id":') for text in files.values())
    say(f"{out}: {count} vectors in {len(files)} files, {sum(map(len, files.values())) / 1e6:.1f} MB")


@vectors.command()
def run(
    testee: Annotated[str, option("testee")],
    vectors: Annotated[Path | None, option("vectors")] = None,
    revision: SeveralRevisions = None,
    expected: Annotated[Path | None, option("expected")] = None,
    update: Annotated[bool, option("update")] = False,
    prose: Annotated[bool, option("prose")] = False,
    timeout: Timeout = 10.0,
    format: ReportFormat = Format.TEXT,
    out: Out = None,
    folder: Folder = None,
    verbose: Verbose = False,
) -> None:
    """Give all vectors to a testee, and report its disagreements; the exit code is 1 if one is not expected.

    A testee is a program that reads documents with one implementation. docs/how-to/vectors.md has its protocol.

    Examples:

    `mcp-bindgen vectors run --testee 'python examples/testees/bindings.py'`

    `mcp-bindgen vectors run --testee 'node testee.mjs' --expected expected.toml --format junit --out report.xml`

    `mcp-bindgen vectors run --testee 'node testee.mjs' --expected expected.toml --update` accepts the present state.
    """
    if update and expected is None:
        raise BadInput("--update needs a file to write", fix="add --expected FILE")
    known = read_expected(expected) if expected is not None and (expected.exists() or not update) else ()
    store = Store(folder)
    pins = [store.any_pin(name) for name in revision or ()]
    files = [] if vectors is None else read_files(vectors)
    if pins and vectors is not None:
        labels = {pin.label for pin in pins}
        files = [file for file in files if (file.extension or file.revision) in labels]
        if not files:
            raise BadInput("holds no vectors of this revision", file=vectors, fix="leave --vectors or --revision out")
    with StatusLine("making vectors") as status, Testee(testee, timeout, verbose=verbose) as program:
        if vectors is None:
            files = list(vector_files(store, revision or ()))
        found = run_vectors(files, program, known, prose=prose, progress=status.update)
    if update and expected is not None:
        save(expected, write_expected(found.disagreements, _NEW), "choose another file for --expected")
        say(f"{expected}: {len(found.disagreements)} disagreements")
        return
    print_report(vectors_report(found), format, out)
    if found.unexpected or found.stale:
        raise typer.Exit(1)
