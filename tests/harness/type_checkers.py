"""Options of type checkers that tests run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from .commands import ROOT


def strict_cache(folder: Path) -> str:
    """Return the `mypy --strict` option for a cache in a new folder, filled from the cache of `make lint`."""
    version = "{}.{}".format(*sys.version_info)
    if (known := ROOT / ".mypy_cache" / version).is_dir():
        shutil.copytree(known, folder / version)
    return f"--cache-dir={folder}"
