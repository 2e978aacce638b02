"""Choose the style of a server: an `App` of annotated functions, or a class with a handler for each method."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum

from mcp_bindgen.spec import BadInput

APP_FEATURES = ("completions", "prompts", "resources", "tools")
"""Capabilities that an `App` project has an example of."""


class Style(StrEnum):
    """Style of a server's code."""

    APP = "app"
    CLASS = "class"


def class_option(
    revisions: Sequence[str] = (),
    features: Collection[str] = (),
    extensions: Collection[str] = (),
    contract: str | None = None,
) -> str | None:
    """Return the option of a server that only a class can meet, or None.

    Args:
        revisions: The revisions that were named; functions have no types of a revision.
        features: The capabilities of the server.
        extensions: The modules of its extensions.
        contract: The option that names its contract, if it has one.
    """
    if contract is not None:
        return contract
    if revisions:
        return "--revision"
    more = sorted({*features} - {*APP_FEATURES}) + sorted(extensions)
    return f"--with {more[0]}" if more else None


def style_of(wanted: Style | None, option: str | None) -> Style:
    """Return the style of a server: as it is wanted, or else an `App`, unless an option needs a class.

    Args:
        wanted: The style that was asked for.
        option: The option that needs a class, if there is one.

    Raises:
        BadInput: An `App` is wanted, and an option needs a class.
    """
    if wanted is Style.APP and option is not None:
        raise BadInput(f"{option} needs a class, not an App", fix=f"give --style class, or leave {option} out")
    return wanted or (Style.CLASS if option is not None else Style.APP)
