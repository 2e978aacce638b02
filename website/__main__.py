"""`python -m website`: build the site; `python -m website serve`: build it again after each change."""

from __future__ import annotations

import sys

from .build import build, serve

if __name__ == "__main__":
    sys.exit(serve() if sys.argv[1:] == ["serve"] else build())
