"""Put the commands together and turns bad input into one line and exit code 2."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from mcp_bindgen.spec import BadInput

from .call import call
from .check import check
from .client import client
from .contract import contract
from .diff import diff
from .generate import generate
from .history import history
from .methods import methods
from .migrate import migrate
from .output import MARKUP
from .scaffold import scaffold
from .schema import schema
from .show import show
from .upgrade import upgrade
from .watch import watch

app = typer.Typer(
    name="mcp-bindgen",
    help="Typed Python bindings for every revision of the Model Context Protocol, generated from its schemas.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=MARKUP,
)
app.command()(generate)
app.command()(check)
app.command()(diff)
app.command(context_settings={"ignore_unknown_options": True})(history)  # error codes look like options
app.command()(watch)
app.command()(migrate)
app.command()(upgrade)
app.command()(methods)
app.command()(show)
app.command()(call)
app.command()(client)
app.add_typer(scaffold, name="scaffold")
app.add_typer(contract, name="contract")
app.add_typer(schema, name="schema")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mcp-bindgen {version('mcp-bindgen')}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Typed Python bindings for every revision of the Model Context Protocol, generated from its schemas."""


def run() -> None:
    """Run the command that the arguments name."""
    try:
        app()
    except BadInput as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
