"""Type checkers that tests run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from .commands import ROOT


def strict_cache(folder: Path) -> str:
    """Return the option of `mypy --strict` for a cache in a new folder, with what `make lint` learned of libraries."""
    version = "{}.{}".format(*sys.version_info)
    if (known := ROOT / ".mypy_cache" / version).is_dir():
        shutil.copytree(known, folder / version)
    return f"--cache-dir={folder}"
