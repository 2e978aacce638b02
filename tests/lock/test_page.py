"""The page `docs/how-to/lock.md`: its programs run, and print what it shows."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.support.commands import ROOT, bindgen, execute

PAGE = (ROOT / "docs" / "how-to" / "lock.md").read_text("utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
OUTPUTS = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
REVISION = ("--revision", "2026-07-28")  # on a busy machine, a server may be too slow to be asked for its best one


def test_the_page(tmp_path: Path) -> None:
    before, after, host = PROGRAMS
    written, checked, refused = OUTPUTS
    server = tmp_path / "weather.py"
    server.write_text(before, "utf-8")
    done = bindgen("lock", "weather.py", *REVISION, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, written), done.stderr
    server.write_text(after, "utf-8")
    done = bindgen("lock", "check", "weather.py", *REVISION, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, checked), done.stderr
    (tmp_path / "host.py").write_text(host, "utf-8")
    done = execute(sys.executable, "host.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, refused), done.stderr
