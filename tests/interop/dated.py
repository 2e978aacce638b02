"""Old versions of the official Python SDK, beside the installed version."""

from __future__ import annotations

from pathlib import Path

from tests.interop import fetched

_BESIDE = ("httpx==0.28.1", "httpcore==1.0.9", "httpx-sse==0.4.3", "certifi", "python-dotenv")
_NEW = ("pydantic-settings==2.16.3",)
_OLD = (
    "pydantic-settings==2.10.1",
    "pydantic==2.11.7",
    "pydantic-core==2.33.2",
)  # older versions of the SDK need these

VERSIONS = {"1.6.0": _OLD, "1.12.4": _OLD, "1.23.3": _NEW}
"""Version -> its dependencies that are missing here, or installed in another version."""


def folder(version: str) -> Path:
    """Return the folder of a version, for PYTHONPATH."""
    return fetched.folder(f"mcp-{version}", f"mcp=={version}", *_BESIDE, *VERSIONS[version])
