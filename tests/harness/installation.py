"""An installation separate from this checkout: a folder of packages, a home folder, and its commands."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

from .commands import Done, execute, snapshot

_MAIN = "from mcp_bindgen.cli import main; main()"


@dataclass(frozen=True)
class Installation:
    """An installed package and the home folder of its user.

    Attributes:
        python: The interpreter.
        site: The folder with this project's packages.
        home: The home folder.
    """

    python: Path
    site: Path
    home: Path

    def bindgen(self, *arguments: object, **variables: str) -> Done:
        """Run `mcp-bindgen`."""
        return self.run("-c", _MAIN, *arguments, **variables)

    def run(self, *arguments: object, **variables: str) -> Done:
        """Run Python in an empty folder."""
        own = {"MCP_BINDGEN_HOME": str(self.home), "PYTHONPATH": ""}
        place = self.home.parent / "elsewhere"
        place.mkdir(exist_ok=True)
        return execute(self.python, *arguments, cwd=place, code=None, **{**own, **variables})

    def files(self) -> dict[str, bytes]:
        """Return the installed files of this project."""
        return snapshot(self.site / "mcp_bindgen")


def wheel(folder: Path, source: Path) -> Path:
    """Build a wheel without its dependencies."""
    build = [sys.executable, "-m", "uv", "build", "--quiet", "--wheel", "--out-dir", str(folder), str(source)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


def installed(folder: Path, built: Path) -> Installation:
    """Install a wheel in a separate environment that shares the dependencies of the current one."""
    made = _empty(folder)
    with zipfile.ZipFile(built) as files:
        files.extractall(made.site)
    (made.site / "shared.pth").write_text(f"{_site(Path(sys.executable))}\n", "utf-8")
    return made


def fresh(folder: Path, *requirements: str) -> Installation:
    """Install requirements with their dependencies in an empty environment."""
    made = _empty(folder)
    execute(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", made.python, *requirements, code=0)
    return made


def _empty(folder: Path) -> Installation:
    venv.create(folder / "venv", symlinks=os.name != "nt")
    python = folder / "venv" / "bin" / "python"
    return Installation(python, _site(python), folder / "home")


def _site(python: Path) -> Path:
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.check_output([python, "-c", ask], text=True).strip())
