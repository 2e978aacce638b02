"""Run a script as if some packages were not installed: `python without.py httptools,uvloop SCRIPT [ARGUMENT ...]`."""

import runpy
import sys

if __name__ == "__main__":
    hidden, *sys.argv = sys.argv[1:]
    sys.modules.update(dict.fromkeys(filter(None, hidden.split(","))))  # type: ignore[arg-type]
    runpy.run_path(sys.argv[0], run_name="__main__")
