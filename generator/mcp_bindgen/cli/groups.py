"""Commands with groups of options: a parameter whose type is a dataclass becomes one option for each field."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

import typer
from typer.core import TyperGroup

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
