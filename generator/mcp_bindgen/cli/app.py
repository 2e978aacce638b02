"""Put the commands together and turn bad input into one line and exit code 2."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mcp_bindgen.runtime import install
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.errors import printable

from .output import MARKUP
from .terminal import guard_streams, say

_COMMANDS: dict[str, dict[str, Any]] = {
    "generate": {},
    "check": {},
    "bridges": {},
    "diff": {},
    "history": {"context_settings": {"ignore_unknown_options": True}},  # error codes look like options
    "watch": {},
    "migrate": {},
    "upgrade": {},
    "methods": {},
    "show": {},
    "call": {},
    "install": {},
    "uninstall": {},
    "dev": {},
    "client": {},
    "login": {},
    "logout": {},
    "auth": {},
    "scaffold": {},
    "contract": {},
    "schema": {},
}
"""Command -> its settings. Each has a module of its name, which holds it, or a group of commands, under that name."""


class Commands(TyperGroup):
    """The commands; the module of one is loaded when it is asked for, because others need much that takes time."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperGroup(name=name) for name in _COMMANDS}
        self._loaded: set[str] = set()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; `None` when there is none of that name."""
        if cmd_name in self.commands and cmd_name not in self._loaded:
            self.commands[cmd_name] = _load(cmd_name)
            self._loaded.add(cmd_name)
        return self.commands.get(cmd_name)


def _load(name: str) -> Any:
    found = getattr(import_module(f".{name}", __package__), name)
    alone = typer.Typer(rich_markup_mode=MARKUP)
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=name)
    else:
        alone.command(name, **_COMMANDS[name])(found)
    return typer.main.get_group(alone).commands[name]


_CLICK_ERROR: type[Exception] = next(one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException")

app = typer.Typer(
    name="mcp-bindgen",
    help="Typed Python bindings for every revision of the Model Context Protocol, generated from its schemas.",
    cls=Commands,
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
    """Typed Python bindings for every revision of the Model Context Protocol, generated from its schemas."""


def run() -> None:
    """Run the command that the arguments name."""
    guard_streams()
    install()  # bindings in the user's folder
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except _CLICK_ERROR as error:
        usage: Any = error
        usage.message = printable(usage.message)
        usage.show()  # as plain text: the consoles of typer write what users and files say as it is
        sys.exit(usage.exit_code)
    except typer.Abort:
        say("Aborted!", err=True)
        sys.exit(1)
    except BadInput as error:
        say(f"error: {error}", err=True)
        sys.exit(2)
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if missing == __name__.partition(".")[0]:
            raise
        fix = "run: pip install 'mcp-bindgen[generate]'"
        say(f"error: this command needs {missing}, which is not installed; {fix}", err=True)
        sys.exit(2)
