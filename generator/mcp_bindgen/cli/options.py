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
from mcp_bindgen.spec.toml import read_toml

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


_ROWS = read_toml(Path(__file__).with_suffix(".toml"))
"""Name of an option -> its words and limits; `words` has texts that several of them share."""

_WORDS: Mapping[str, str] = _ROWS.pop("words")
SOURCES, SERVERS = _WORDS["sources"], _WORDS["servers"]
REVISION_HELP = f"A revision such as 2025-11-25, an extension such as tasks, or a schema file: {SOURCES}."


def option(name: str, autocompletion: Callable[[str], list[str]] | None = None, **words: object) -> Any:
    """Return an option with the words of `options.toml`; its help may have `words` of the command."""
    row: dict[str, Any] = _ROWS[name]
    text = row["help"].format(**_WORDS, **words)
    return typer.Option(f"--{name}", **{**row, "help": text}, autocompletion=autocompletion)


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
_revision = option("revision", complete_revisions)
Revision = Annotated[str | None, _revision]
SeveralRevisions = Annotated[list[str] | None, _revision]
SchemaFile = Annotated[str | None, option("schema")]
SeveralSchemaFiles = Annotated[list[str] | None, option("schema")]
Semantics = Annotated[Path | None, option("semantics")]
Folder = Annotated[Path | None, option("folder")]
Extension = Annotated[list[str] | None, option("extension", complete_extensions)]
Language = Annotated[str, option("language")]
ModuleLanguage = Annotated[Literal["python", "typescript"] | None, option("language")]
Templates = Annotated[Path | None, option("templates")]
Package = Annotated[str | None, option("package")]
SeveralPackages = Annotated[list[str] | None, option("package")]
Only = Annotated[str | None, option("only")]
ContractFile = Annotated[Path | None, option("contract")]
From = Annotated[str | None, option("from")]
RequiredFrom = Annotated[str, option("from")]
Strict = Annotated[bool, option("strict")]

# --- output ---------------------------------------------------------------------------------------------------------

Out = Annotated[Path | None, option("out")]
RequiredOut = Annotated[Path, option("out")]
ReportFormat = Annotated[Format, option("format")]
Json = Annotated[bool, option("json")]
JsonSchema = Annotated[bool, option("json-schema")]
Witness = Annotated[bool, option("witness")]
Failure = Annotated[FailOn, option("fail-on")]
Check = Annotated[bool, option("check")]
DryRun = Annotated[bool, option("dry-run")]
Force = Annotated[bool, option("force")]
Name = Annotated[str | None, option("name")]

# --- servers --------------------------------------------------------------------------------------------------------

Server = Annotated[str, typer.Argument(help=SERVERS)]
Timeout = Annotated[float, option("timeout")]
Env = Annotated[list[str] | None, option("env")]
Header = Annotated[list[str] | None, option("header")]
BearerEnv = Annotated[str | None, option("bearer-env")]
Verbose = Annotated[bool, option("verbose")]
Declare = Annotated[str | None, option("declare")]
Transport = Annotated[str | None, option("transport")]
With = Annotated[str | None, option("with")]
Port = Annotated[int, option("port")]


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
