"""An installation apart from this checkout: a folder of packages, the user's folder, and the commands in it."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

from .commands import ROOT, Done, execute, snapshot
from .quickstart import wheel

_MAIN = "from mcp_bindgen.cli import main; main()"


@dataclass(frozen=True)
class Installation:
    """What is installed, and for whom.

    Attributes:
        python: The interpreter.
        site: The folder with our packages.
        home: The user's folder.
    """

    python: Path
    site: Path
    home: Path

    def bindgen(self, *arguments: object, **variables: str) -> Done:
        """Runs `mcp-bindgen`."""
        return self.run("-c", _MAIN, *arguments, **variables)

    def run(self, *arguments: object, **variables: str) -> Done:
        """Runs Python in an empty folder."""
        own = {"MCP_BINDGEN_HOME": str(self.home), "PYTHONPATH": ""}
        place = self.home.parent / "elsewhere"
        place.mkdir(exist_ok=True)
        return execute(self.python, *arguments, cwd=place, code=None, **{**own, **variables})

    def files(self) -> dict[str, bytes]:
        """What is installed of ours."""
        return snapshot(self.site / "mcp_bindgen")


def installed(folder: Path, source: Path = ROOT) -> Installation:
    """The wheel of a source tree, in an environment of its own that shares what it depends on with ours."""
    venv.create(folder / "venv", symlinks=os.name != "nt")
    python = folder / "venv" / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site, shared = (
        Path(subprocess.check_output([one, "-c", ask], text=True).strip()) for one in (str(python), sys.executable)
    )
    (folder / "dist").mkdir()
    with zipfile.ZipFile(wheel(folder / "dist", source)) as built:
        built.extractall(site)
    (site / "shared.pth").write_text(f"{shared}\n", "utf-8")
    return Installation(python, site, folder / "home")
