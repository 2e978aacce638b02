"""Find the origin of the installed mcp-bindgen, for projects that are installed before there is a release.

PyPA, "Recording the Direct URL Origin of installed distributions" (PEP 610).
"""

from __future__ import annotations

import json
from importlib.metadata import distribution
from typing import Any

from mcp_bindgen.spec.json import is_object

_NAME = "mcp-bindgen"


def installed_from() -> str | None:
    """Return the requirement that names the origin of this installation; `None` if it is a package index."""
    said = distribution(_NAME).read_text("direct_url.json")
    found: Any = json.loads(said) if said else None
    if not is_object(found) or not isinstance(url := found.get("url"), str):
        return None
    vcs = found.get("vcs_info")
    if is_object(vcs):
        url = f"{vcs.get('vcs', 'git')}+{url}@{vcs.get('commit_id', 'HEAD')}"
    elif isinstance(folder := found.get("subdirectory"), str):
        url = f"{url}#subdirectory={folder}"
    return f"{_NAME} @ {url}"
