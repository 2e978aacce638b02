"""`mcp-bindgen uninstall`: remove a server from the configuration of a host."""

from __future__ import annotations

from typing import Annotated

import typer

from mcp_bindgen.install.hosts import remove

from .install import File, Host, OfProject, place_named, put
from .options import DryRun


def uninstall(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the server in the configuration.")],
    host: Host = None,
    file: File = None,
    project: OfProject = False,
    dry_run: DryRun = False,
) -> None:
    """Remove a server from the configuration of a host; comments and other entries remain unchanged.

    A copy of the previous file is kept, with `.bak` added to its name.

    Examples:

    `mcp-bindgen uninstall weather --host claude-desktop`

    `mcp-bindgen uninstall weather --file mcp.json --dry-run`
    """
    place = place_named(host, file, project=project)
    put(place, remove(place, host, name), f"removed {name}", dry_run=dry_run)
