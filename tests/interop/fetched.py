"""Packages that are no dependencies, for programs of their own: each set in a folder that is kept."""

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
    """The folder to put into PYTHONPATH for some packages; fetched by pip, without what they need, when first wanted.

    Where that is impossible the test is skipped; in CI it fails.

    Args:
        name: What the folder is called; another one for other packages.
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
        except OSError:  # somebody else was quicker
            shutil.rmtree(made)
    return found
