"""The command `mcp-bindgen`."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def main() -> None:
    """Run the command line; exit code 0 is success, 1 "checked and found wanting", 2 bad input or usage."""
    if find_spec("typer") is None:
        sys.exit("error: the command line is not installed; run: pip install 'mcp-bindgen[generate]'")
    from .app import run

    run()
