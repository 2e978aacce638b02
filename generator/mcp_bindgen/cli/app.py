"""Put the commands together and turn bad input into one line and exit code 2."""

from __future__ import annotations

import ast
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mcp_bindgen.spec.errors import BadInput, printable
from mcp_bindgen.user_bindings import install

from .options import HelpGroup, expanded
from .output import MARKUP
from .table import Command, by_heading, installed
from .terminal import guard_streams, say


class AllCommands(HelpGroup):
    """The commands; each module is loaded when its command is used, because some imports take long."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._table = installed()
        self._headings = by_heading(self._table.values())
        self.commands = {name: TyperGroup(name=name) for names in self._headings.values() for name in names}
        self._is_listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or `None` if there is none of that name; for lists of commands, only its description."""
        if cmd_name not in self.commands:
            return None
        command = self._table[cmd_name]
        if self._is_listing:
            return TyperGroup(name=cmd_name, help=_description(command), rich_help_panel=command.heading)
        return _load(command)

    @contextmanager
    def _listing(self) -> Generator[None]:
        self._is_listing = True
        try:
            yield
        finally:
            self._is_listing = False

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        with self._listing():
            super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return the commands and options that begin with the typed text."""
        with self._listing():
            return super().shell_complete(ctx, incomplete)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under their headings, for plain help."""
        for heading, names in self._headings.items():
            self.write_section(ctx, formatter, heading, names)


def _description(command: Command) -> str:
    """Return the text with which the module of a command describes it, without an import of the module."""
    try:
        spec = find_spec(command.module)
        nodes = ast.parse(Path(spec.origin).read_bytes()).body if spec is not None and spec.origin is not None else []
    except Exception:  # any error of a foreign package; its command says it when it is used
        nodes = []
    for node in nodes:
        match node:
            case ast.FunctionDef(name=found) if found == command.name:
                return ast.get_docstring(node) or ""
            case ast.Assign(targets=[ast.Name(found)], value=ast.Call(args=arguments, keywords=options)):
                texts = [*arguments, *(option.value for option in options if option.arg == "help")]
                if found == command.name and isinstance(texts[0], ast.Constant):
                    return str(texts[0].value)
            case _:
                pass
    return "Cannot be loaded."


@cache
def _load(command: Command) -> Any:
    try:
        found = getattr(import_module(command.module), command.name)
    except Exception as error:  # any error of a foreign module
        if command.module.startswith(f"{__name__.partition('.')[0]}."):
            raise
        problem = f"the command {command.name} of {command.module} cannot be loaded: {error}"
        raise BadInput(problem, fix="repair or uninstall the package that has it") from None
    alone = typer.Typer(rich_markup_mode=MARKUP)
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=command.name, rich_help_panel=command.heading)
    else:
        settings = {"ignore_unknown_options": command.is_open}
        alone.command(command.name, rich_help_panel=command.heading, context_settings=settings)(expanded(found))
    return typer.main.get_group(alone).commands[command.name]


_CLICK_ERROR: type[Exception] = next(one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException")

app = typer.Typer(
    name="mcp-bindgen",
    cls=AllCommands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=MARKUP,
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(f"mcp-bindgen {version('mcp-bindgen')}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Typed bindings for every revision of the Model Context Protocol, generated from its schemas.

    Examples:

    `mcp-bindgen generate` generates the bindings of all revisions.

    `mcp-bindgen diff 2025-06-18 2025-11-25` reports the changes between two revisions, with fixes.

    `mcp-bindgen scaffold server weather` starts a server.
    """


def run() -> None:
    """Run the command that the arguments name."""
    guard_streams()
    install()  # bindings in the user's folder
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except _CLICK_ERROR as error:
        usage: Any = error
        is_help = type(error).__name__ == "NoArgsIsHelpError"  # typer does not export it
        usage.message = printable(usage.message, keep="\n" if is_help else "")
        usage.show()  # as plain text: the consoles of typer do not escape text from files
        sys.exit(usage.exit_code)
    except typer.Abort:
        say("Aborted!", err=True)
        sys.exit(1)
    except BadInput as error:
        say(f"error: {error}", err=True)
        sys.exit(2)
    except ModuleNotFoundError as error:
        from mcp_bindgen.runtime.extras import NotInstalled  # only needed here

        named = error if isinstance(error, NotInstalled) else NotInstalled.of(error, "this command", "generate")
        if not isinstance(named, NotInstalled):
            raise
        say(f"error: {named}", err=True)
        sys.exit(2)
