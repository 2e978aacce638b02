"""`mcp-bindgen uninstall`: take a server out of the configuration of a host."""

from __future__ import annotations

from typing import Annotated

import typer

from mcp_bindgen.install.hosts import remove

from .install import DryRun, File, Host, OfProject, place_named, put


def uninstall(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the server is called there.")],
    host: Host = None,
    file: File = None,
    project: OfProject = False,
    dry_run: DryRun = False,
) -> None:
    """Take a server out of the configuration of a host; comments and what else stands there stay as they are.

    The file as it was is kept beside it, with `.bak` added to its name.

    Examples:

    `mcp-bindgen uninstall weather --host claude-desktop`

    `mcp-bindgen uninstall weather --file mcp.json --dry-run`
    """
    place = place_named(host, file, project=project)
    put(place, remove(place, host, name), f"{name} is removed", dry_run=dry_run)
