"""The user's folder, which holds revisions beside the installed ones."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "MCP_BINDGEN_HOME"
"""The environment variable that names another folder."""


def home() -> Path | None:
    """Return the folder: `MCP_BINDGEN_HOME`, or by default the system's folder for the data of a user.

    `None` if Python runs without packages of the user (`-s`, `-I`, `PYTHONNOUSERSITE`).

    Raises:
        ValueError: The variable is no absolute path; the folder would depend on the current folder.
    """
    if sys.flags.no_user_site:
        return None
    named = "" if sys.flags.ignore_environment else os.environ.get(VARIABLE, "")
    if not named:
        from platformdirs import user_data_path  # slow to load, and rarely needed

        return user_data_path("mcp-bindgen", appauthor=False)
    if not Path(named).is_absolute():
        raise ValueError(f"{VARIABLE} is {named!r}; give it an absolute path")
    return Path(named)


def bindings_folder() -> Path | None:
    """Return the folder of the generated packages; raises `ValueError` as `home` does."""
    folder = home()
    return folder / "generated" / "mcp_bindgen" if folder is not None else None
