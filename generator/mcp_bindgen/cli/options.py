"""Options of the command line: each name has one meaning, in every command that takes it.

A parameter whose type is a dataclass is a group of options: one for each field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer
from typer.core import TyperGroup

from mcp_bindgen.report import Format
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.semantics import merge_semantics, read_semantics

from .output import MARKUP

_MAX_HELP_CHARS = 200


class HelpGroup(TyperGroup):
    """Group whose plain help has the whole first paragraph of each command.

    Attributes:
        default: The command that may be left out; empty if there is none.
    """

    default = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command before arguments that begin with no command."""
        is_stated = args[0] in (*self.commands, "--help") if args else self.no_args_is_help
        return super().parse_args(ctx, args if is_stated or not self.default else [self.default, *args])

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands."""
        self.write_section(ctx, formatter, "Commands", self.list_commands(ctx))

    def write_section(self, ctx: Any, formatter: Any, heading: str, names: Iterable[str]) -> None:
        """Write the names and descriptions of commands under a heading."""
        found = [(name, self.get_command(ctx, name)) for name in names]
        with formatter.section(heading):
            formatter.write_dl([(name, one.get_short_help_str(_MAX_HELP_CHARS)) for name, one in found if one])


class Commands(typer.Typer):
    """Group of commands, whose parameters may be groups of options.

    Args:
        help: Description of the group.
        default: The command that may be left out.
        no_args_is_help: True to show the help instead of running the default command without arguments.
    """

    def __init__(self, help: str, default: str = "", *, no_args_is_help: bool = True) -> None:
        group = type("HelpGroup", (HelpGroup,), {"default": default})
        super().__init__(cls=group, help=help, no_args_is_help=no_args_is_help, rich_markup_mode=MARKUP)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Return the decorator that adds a function as a command."""
        add = super().command(name, **settings)
        return lambda function: add(expanded(function))


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with an option for each field of its groups, in place of the groups."""
    groups: dict[str, type[Any]] = {}
    options: list[Parameter] = []
    for parameter in signature(command, eval_str=True).parameters.values():
        kind = parameter.annotation
        if isinstance(kind, type) and is_dataclass(kind):
            groups[parameter.name], hints = kind, get_type_hints(kind, include_extras=True)
            options += [
                Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name])
                for one in fields(kind)
            ]
        else:
            options.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**given: Any) -> None:
        made = {name: kind(**{one.name: given.pop(one.name) for one in fields(kind)}) for name, kind in groups.items()}
        command(**given, **made)

    expected: Any = run
    expected.__signature__ = Signature(options)
    expected.__annotations__ = {option.name: option.annotation for option in options}
    return run


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
_LANGUAGE: Any = typer.Option(
    "--language", metavar="NAME", help="Language of the code; for typed clients, by default the end of --out tells it."
)
Language = Annotated[str, _LANGUAGE]
ModuleLanguage = Annotated[Literal["python", "typescript"] | None, _LANGUAGE]
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
