"""Versions of the official Python SDK beside the one that is installed, each in a folder of its own that is kept."""

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
_BESIDE = ("httpx==0.28.1", "httpcore==1.0.9", "httpx-sse==0.4.3", "certifi", "python-dotenv")
_NEW = ("pydantic-settings==2.16.3",)
_OLD = ("pydantic-settings==2.10.1", "pydantic==2.11.7", "pydantic-core==2.33.2")  # what older versions work with

VERSIONS = {"1.6.0": _OLD, "1.12.4": _OLD, "1.23.3": _NEW}
"""Version -> what it needs that is not installed beside it, or in another version."""


@cache
def folder(version: str) -> Path:
    """The folder to put into PYTHONPATH for a version; fetched by pip when it is first needed.

    Where that is impossible the test is skipped; in CI it fails.
    """
    kept = os.environ.get("MCP_BINDGEN_TEST_CACHE")
    cache = Path(kept) if kept else user_cache_path("mcp-bindgen-tests")
    found = cache / f"mcp-{version}-{sys.implementation.cache_tag}"
    if not found.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        made = Path(mkdtemp(dir=cache))
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
        wanted = [f"mcp=={version}", *_BESIDE, *VERSIONS[version]]
        done = subprocess.run(
            [*pip, "--no-deps", "--target", str(made), *wanted], capture_output=True, text=True, timeout=_PATIENCE
        )
        if done.returncode:
            shutil.rmtree(made)
            missing = f"pip cannot fetch mcp {version}: {done.stderr.strip()[-300:]}"
            pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
        try:
            made.rename(found)
        except OSError:  # somebody else was quicker
            shutil.rmtree(made)
    return found
