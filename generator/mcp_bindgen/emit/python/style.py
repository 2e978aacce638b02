"""Format of generated code: black writes it, with the imports that it uses."""

from __future__ import annotations

import ast
import os
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context

from .environment import WIDTH
from .imports import resolved

_LARGE = 60_000
"""Characters for which another process is worth its start."""


def style(code: str, package: str = "") -> str:
    """Return `code` as black formats it; `package` as in `resolved`."""
    return _formatted("code.py", resolved(code, package))


def style_files(files: Mapping[str, str]) -> dict[str, str]:
    """Return the Python files of a package as black formats them, without configuration of the user.

    Args:
        files: File name -> text.

    Raises:
        SyntaxError: A file is not Python; its `filename` is the name.
    """
    texts = {name: resolved(text) for name, text in files.items()}
    size, processes = sum(map(len, texts.values())), min(os.cpu_count() or 1, len(texts))
    # A copy of a process with several threads may wait for a lock for ever.
    if size < _LARGE or processes < 2 or sys.platform != "linux" or threading.active_count() > 1:
        return dict(zip(texts, map(_formatted, texts, texts.values()), strict=True))
    import_module("black")  # once, before the copies
    by_size = sorted(texts, key=lambda name: -len(texts[name]))
    with ProcessPoolExecutor(processes, get_context("fork")) as pool:
        done = dict(zip(by_size, pool.map(_formatted, by_size, map(texts.__getitem__, by_size)), strict=True))
    return {name: done[name] for name in texts}


def _formatted(name: str, text: str) -> str:
    from black import format_str  # it takes time to load
    from black.mode import Mode, TargetVersion
    from black.parsing import InvalidInput

    try:
        return format_str(text, mode=Mode({TargetVersion.PY311}, WIDTH))
    except InvalidInput:
        ast.parse(text, name)
        raise
