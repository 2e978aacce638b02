"""Options of the command line: each name has one meaning, in every command that takes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mcp_bindgen.report import Format
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.semantics import merge_semantics, read_semantics

SOURCES = "a path, an https address, git:REPO@REV:PATH or - for standard input"
SERVERS = "A server: URL, FILE.json#NAME, FILE.py, DIR of a project, MODULE:NAME of an App, or COMMAND in quotes."
REVISION_HELP = f"A revision such as 2025-11-25, an extension such as tasks, or a schema file: {SOURCES}."


FailOn = Literal["never", "any", "risky", "breaking"]
"""Least severe change for which a command ends with exit code 1."""


def complete_revisions(incomplete: str) -> list[str]:
    """Return the revisions that begin with the typed text, for shells."""
    return [name for name in Store().pins if name.startswith(incomplete)]


def complete_extensions(incomplete: str) -> list[str]:
    """Return the modules of extensions that begin with the typed text, for shells."""
    known = Store()
    return [name for name in dict.fromkeys(map(known.module, known.extension_pins)) if name.startswith(incomplete)]


# --- input ----------------------------------------------------------------------------------------------------------

Revisions = Annotated[
    list[str] | None,
    typer.Argument(help="Revisions such as 2025-11-25; by default all.", autocompletion=complete_revisions),
]
_revision = typer.Option(
    "--revision",
    metavar="NAME",
    help="Protocol revision to use; with --schema, the name of its revision.",
    autocompletion=complete_revisions,
)
Revision = Annotated[str | None, _revision]
SeveralRevisions = Annotated[list[str] | None, _revision]
_schema = typer.Option("--schema", metavar="SOURCE", help=f"Schema file of a draft or a fork: {SOURCES}.")
SchemaFile = Annotated[str | None, _schema]
SeveralSchemaFiles = Annotated[list[str] | None, _schema]
Semantics = Annotated[
    Path | None,
    typer.Option("--semantics", metavar="FILE", help="Facts, in TOML, that a schema file cannot state."),
]
Folder = Annotated[
    Path | None, typer.Option("--folder", metavar="DIR", help="Folder of schemas to use in place of the built-in one.")
]
Extension = Annotated[
    list[str] | None,
    typer.Option(
        "--extension",
        metavar="NAME",
        help="Extension of the revision, such as tasks or tasks@draft; repeatable.",
        autocompletion=complete_extensions,
    ),
]
Language = Annotated[
    str, typer.Option("--language", metavar="NAME", help="Language of the bindings: the name of an emitter.")
]
ModuleLanguage = Annotated[
    Literal["python", "typescript"] | None,
    typer.Option("--language", help="Language of the module; by default, the end of --out tells it."),
]
Templates = Annotated[
    Path | None,
    typer.Option("--templates", metavar="DIR", help="Folder with templates that replace the templates of the emitter."),
]
_package = typer.Option("--package", metavar="NAME", help="Import name of bindings of your own.")
Package = Annotated[str | None, _package]
SeveralPackages = Annotated[list[str] | None, _package]
Only = Annotated[
    str | None,
    typer.Option(
        "--only",
        metavar="NAMES",
        help="Only what these capabilities need, such as tools,resources. `types` writes types without the runtime.",
    ),
]
ContractFile = Annotated[
    Path | None,
    typer.Option("--contract", metavar="FILE", help="Contract with the tools, prompts and resources of a server."),
]
_from = typer.Option("--from", metavar="SERVER", help=f"{SERVERS} The file of a contract works too.")
From = Annotated[str | None, _from]
RequiredFrom = Annotated[str, _from]
Strict = Annotated[
    bool, typer.Option("--strict", help="Fail where a schema or a server breaks a rule, instead of warning about it.")
]

# --- output ---------------------------------------------------------------------------------------------------------

_out = typer.Option("--out", metavar="PATH", help="Write to this file or folder.")
Out = Annotated[Path | None, _out]
RequiredOut = Annotated[Path, _out]
ReportFormat = Annotated[Format, typer.Option("--format", help="Format of the report.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JsonSchema = Annotated[bool, typer.Option("--json-schema", help="Print the JSON Schema of the output.")]
Witness = Annotated[bool, typer.Option("--witness", help="Show a value that proves each change.")]
Failure = Annotated[FailOn, typer.Option("--fail-on", help="End with exit code 1 if there is such a change.")]
Check = Annotated[
    bool, typer.Option("--check", help="Write nothing; end with exit code 1 if the output is out of date.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the changes, and write nothing.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files and entries that were edited or are not ours.")]
Name = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name to use in place of the default.")]

# --- servers --------------------------------------------------------------------------------------------------------

Server = Annotated[str, typer.Argument(help=SERVERS)]
Timeout = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", min=0, help="Time to wait for a connection and for each answer."),
]
Env = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="KEY=VALUE", help="Environment variable for the server; repeatable."),
]
Header = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="NAME=VALUE", help="HTTP header for a server at a URL; repeatable."),
]
BearerEnv = Annotated[
    str | None,
    typer.Option(
        "--bearer-env", metavar="KEY", help="Environment variable with a token that a server at a URL accepts."
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show the stderr of the server.")]
Declare = Annotated[
    str | None,
    typer.Option(
        "--declare",
        metavar="NAMES",
        help="Client capabilities to declare, such as elicitation,sampling,roots; some servers then offer more.",
    ),
]
Transport = Annotated[
    str | None, typer.Option("--transport", metavar="NAMES", help="Transports to use: stdio,http,sse.")
]
With = Annotated[
    str | None,
    typer.Option("--with", metavar="NAMES", help="Capabilities and extensions to offer, such as tools,prompts,tasks."),
]
Port = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port on this machine; 0 for any.")]


def is_failure(fail_on: FailOn, found: Iterable[int], limits: Mapping[FailOn, int]) -> bool:
    """Return whether a command must fail.

    Args:
        fail_on: Value of `--fail-on`.
        found: Severities of the changes.
        limits: Value of `--fail-on` other than `never` -> the least severity that fails.
    """
    return fail_on != "never" and any(severity >= limits[fail_on] for severity in found)


def names(value: str | None, option: str = "--only") -> tuple[str, ...]:
    """Return the names in the comma-separated list of an option; raise `BadInput` for an empty list."""
    found = tuple(name.strip() for name in (value or "").split(",") if name.strip())
    if value is not None and not found:
        raise BadInput(f"{option} names nothing", fix=f"give names, as in {option} tools,resources, or leave it out")
    return found


@dataclass(frozen=True)
class SchemaFolder:
    """Folder of schemas, and how they are read."""

    folder: Folder = None
    strict: Strict = False

    @cached_property
    def store(self) -> Store:
        """The folder of schemas."""
        return Store(self.folder, strict=self.strict)


@dataclass(frozen=True)
class Schemas(SchemaFolder):
    """Folder of schemas, and facts about schema files elsewhere."""

    semantics: Semantics = None

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """The facts about schema files: the built-in ones, and the file of `--semantics`."""
        known = self.store.semantics
        return merge_semantics(known, read_semantics(self.semantics)) if self.semantics else known
