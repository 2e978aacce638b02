"""Packages that are no dependencies of the project, each set in a cached folder for use in separate processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from platformdirs import user_cache_path

_PATIENCE = 120.0


@cache
def folder(name: str, *packages: str) -> Path:
    """Return a folder with packages, for PYTHONPATH; pip installs them at first use, without dependencies.

    If that fails, the test is skipped; in CI it fails.

    Args:
        name: The name of the folder, unique for each set of packages.
        packages: The packages with their versions.
    """
    kept = os.environ.get("MCP_BINDGEN_TEST_CACHE")
    cache = Path(kept) if kept else user_cache_path("mcp-bindgen-tests")
    found = cache / f"{name}-{sys.implementation.cache_tag}"
    if not found.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        made = Path(mkdtemp(dir=cache))
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
        done = subprocess.run(
            [*pip, "--no-deps", "--target", str(made), *packages], capture_output=True, text=True, timeout=_PATIENCE
        )
        if done.returncode:
            shutil.rmtree(made)
            missing = f"pip cannot fetch {name}: {done.stderr.strip()[-300:]}"
            pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
        try:
            made.rename(found)
        except OSError:  # another process has created the folder
            shutil.rmtree(made)
    return found
