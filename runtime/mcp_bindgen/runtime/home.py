"""Name the folder in which a user keeps revisions that are not part of the installation."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "MCP_BINDGEN_HOME"
"""The environment variable that names another folder."""


def home() -> Path | None:
    """Return the folder: what `MCP_BINDGEN_HOME` says, else the system's place for the data of a user.

    `None` where Python was told to leave out what the user installed (`-s`, `-I`, `PYTHONNOUSERSITE`).

    Raises:
        ValueError: The variable is no absolute path, so the folder would depend on the current one.
    """
    if sys.flags.no_user_site:
        return None
    named = "" if sys.flags.ignore_environment else os.environ.get(VARIABLE, "")
    if not named:
        from platformdirs import user_data_path  # takes time to load, and few programs come here

        return user_data_path("mcp-bindgen", appauthor=False)
    if not Path(named).is_absolute():
        raise ValueError(f"{VARIABLE} is {named!r}; give it an absolute path")
    return Path(named)


def bindings_folder() -> Path | None:
    """Return the folder of the packages that were generated there; raises `ValueError` as `home`."""
    folder = home()
    return folder / "generated" / "mcp_bindgen" if folder is not None else None
