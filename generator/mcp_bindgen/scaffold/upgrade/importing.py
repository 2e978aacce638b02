"""Import modules, in a Python of its own that may lack ours: `python -P importing.py JOBS OUT`.

JOBS is a JSON file, a list of `{"name", "base", "file", "whole"}`. OUT gets a line of JSON for each of them, as soon as
it is done: what went wrong, with the places in files that led there, or `null`.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any


def attempt(job: dict[str, Any]) -> dict[str, Any] | None:
    """Import one module; gives what went wrong."""
    if job["base"] not in sys.path:
        sys.path.insert(0, job["base"])
    loaded = sys.modules.get(job["name"])
    if loaded is not None and getattr(loaded, "__file__", None) != job["file"]:
        del sys.modules[job["name"]]
    try:
        if job["whole"]:
            importlib.import_module(job["name"])
        else:
            _only_imports(job)
    except BaseException as error:  # a module may raise anything
        trail = [[frame.filename, frame.lineno or 1] for frame in traceback.extract_tb(error.__traceback__)]
        if isinstance(error, SyntaxError) and error.filename:
            trail.append([error.filename, error.lineno or 1])
        return {"reason": traceback.format_exception_only(error)[-1].strip(), "trail": trail}
    return None


def _only_imports(job: dict[str, Any]) -> None:
    """Run the imports of a module and nothing else of it."""
    tree = ast.parse(Path(job["file"]).read_bytes(), job["file"])
    tree.body = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    module = ModuleType(job["name"])
    module.__package__ = job["name"].rpartition(".")[0]
    if module.__package__:
        importlib.import_module(module.__package__)
    exec(compile(tree, job["file"], "exec"), module.__dict__)  # noqa: S102 - as an import would


def main(jobs: str, out: str) -> None:
    """Work through the jobs in order."""
    with Path(out).open("a", encoding="utf-8") as report:
        for job in json.loads(Path(jobs).read_text("utf-8")):
            report.write(json.dumps(attempt(job)) + "\n")
            report.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)  # threads that a module started do not keep us
