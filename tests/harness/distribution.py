"""Checks of a wheel and a source distribution: `python -m tests.harness.distribution dist`, run by `make dist`.

Each extra is installed in a separate environment, where its public names are imported. The commands of a new user
run in the environment of the generator. All dependencies come from the package index.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tarfile
import venv
import zipfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from email.parser import BytesParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .commands import ROOT, SETTINGS, SOURCE_ROOTS, execute

PAGE = ROOT / "docs" / "versioning.md"
RESOLVE = """
import importlib, sys
for package in sys.argv[1:]:
    module = importlib.import_module(package)
    for name in module.__all__:
        try:
            getattr(module, name)
        except ImportError as error:
            assert "pip install" in str(error), f"{package}.{name}: {error}"
"""
IMPORTED = {"opentelemetry-api": "opentelemetry", "pydocket": "docket", "ruamel.yaml": "ruamel"}
"""Distribution -> its module, where they differ by more than a hyphen."""
REVISION = "2025-11-25"
WEATHER = ("python -m weather", "--env", "PYTHONPATH=weather/src")
COMMANDS: Sequence[tuple[tuple[str, ...], str]] = (
    (("scaffold", "server", "weather"), "Call it:"),
    (("scaffold", "client", "asker"), "asker/"),
    (("call", *WEATHER, "tools/call", "greet", '{"name": "Ada"}'), "Hello, Ada!"),
    (("generate", REVISION, "--out", "own", "--package", "acme.mcp"), "acme/mcp"),
    (("client", "--from", *WEATHER, "--out", "typed.py"), "typed.py"),
    (("diff", "2025-06-18", REVISION), f"MCP 2025-06-18 -> {REVISION}"),
)
"""Commands that run in an installed generator, and a part of their output."""


def public_packages() -> dict[str, str]:
    """Return public package -> extra that it needs, from the table of docs/versioning.md."""
    return dict(re.findall(r"^\| `(mcp_bindgen[\w.]+)` \| `?(\w*)`? ?\|$", PAGE.read_text("utf-8"), re.MULTILINE))


def project() -> dict[str, Any]:
    """Return the table `project` of pyproject.toml."""
    found: dict[str, Any] = SETTINGS["project"]
    return found


def user_extras() -> list[str]:
    """Return the extras, without those for the development of this project."""
    return [extra for extra in project()["optional-dependencies"] if extra not in ("dev", "docs")]


def modules_of(extra: str) -> set[str]:
    """Return the third-party modules that an extra brings."""
    found: set[str] = set()
    for line in project()["optional-dependencies"][extra]:
        if (nested := re.match(r"mcp-bindgen\[(.*)\]", line)) is not None:
            found = found.union(*map(modules_of, nested[1].split(",")))
        else:
            name = re.split(r"[^\w.-]", line)[0]
            found.add(IMPORTED.get(name, name.replace("-", "_")))
    return found


def tracked() -> set[str]:
    """Return the files of this checkout that Git tracks or would track."""
    listed = execute("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    assert listed.returncode == 0, listed.stderr
    return {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}


def wheel_contents() -> set[str]:
    """Return the expected files of the wheel, without its metadata."""
    own = {
        name.partition("/")[2]
        for name in tracked()
        if name.startswith(tuple(f"{root}/mcp_bindgen/" for root in SOURCE_ROOTS))
    }
    return own | {f"mcp_bindgen/{name}" for name in tracked() if name.startswith("schema/")}


def check_contents(wheel: Path, sdist: Path) -> None:
    """Compare the file names in both distributions with the checkout."""
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
    _same(wheel.name, names, wheel_contents())
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    _same(sdist.name, inside, tracked() | {"PKG-INFO"})


def _same(file: str, found: set[str], wanted: set[str]) -> None:
    assert found == wanted, f"{file}: missing {sorted(wanted - found)[:5]}, unexpected {sorted(found - wanted)[:5]}"


def check_metadata(wheel: Path) -> None:
    """Compare the metadata of a wheel with pyproject.toml."""
    with zipfile.ZipFile(wheel) as opened:
        (name,) = [name for name in opened.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = BytesParser().parsebytes(opened.read(name))
    stated = project()
    urls = dict(line.split(", ", 1) for line in metadata.get_all("Project-URL", []))
    assert metadata["Name"] == stated["name"]
    assert metadata["Version"] == stated["version"]
    assert metadata["License-Expression"] == stated["license"]
    assert urls == stated["urls"]
    assert metadata.get_all("Classifier") == stated["classifiers"]
    assert set(metadata.get_all("Provides-Extra", [])) == set(stated["optional-dependencies"])
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload(decode=True) == (ROOT / "README.md").read_bytes()


def check_release(tag: str, repository: str, changelog: str) -> None:
    """Compare a tag and a repository URL with pyproject.toml and the changelog."""
    stated = project()
    assert tag == f"v{stated['version']}", f"the tag is {tag}, pyproject.toml has the version {stated['version']}"
    assert repository == stated["urls"]["Repository"], f"{repository} is not the repository of project.urls"
    heading = rf"^## \[?{re.escape(stated['version'])}\]? - \d{{4}}-\d\d-\d\d$"
    assert re.search(heading, changelog, re.MULTILINE), f"CHANGELOG.md has no dated heading of {stated['version']}"


def untyped(python: Path, package: str) -> list[str]:
    """Return the public symbols of an installed package whose types are incomplete according to pyright."""
    search = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    words = ("-m", "pyright", "--ignoreexternal", "--verifytypes", package, "--outputjson")
    with TemporaryDirectory() as empty:
        done = execute(sys.executable, *words, cwd=Path(empty), code=None, **search)
    found = json.loads(done.stdout)["typeCompleteness"]
    assert found["modules"], f"{package} has no py.typed"
    return [one["name"] for one in found["symbols"] if one["isExported"] and not one["isTypeKnown"]]


def environment(folder: Path, requirement: str) -> Path:
    """Create an environment with a requirement; return its Python."""
    venv.create(folder, with_pip=True, symlinks=os.name != "nt")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    for words in (("install", "--quiet", "--disable-pip-version-check", requirement), ("check",)):
        done = execute(python, "-m", "pip", *words)
        assert done.returncode == 0, done.stdout + done.stderr
    return python


def check_extra(folder: Path, wheel: Path, extra: str, packages: Mapping[str, str]) -> str:
    """Install one extra and resolve the public names of packages that need only it; return a line to print."""
    python = environment(folder, f"mcp-bindgen{f'[{extra}]' if extra else ''} @ {wheel.as_uri()}")
    chosen = [package for package, needed in packages.items() if needed in ("", extra)]
    done = execute(python, "-W", "error", "-c", RESOLVE, *chosen, cwd=folder)
    assert done.returncode == 0, f"[{extra}]: {done.stderr}"
    installed = json.loads(execute(python, "-m", "pip", "list", "--format", "json").stdout)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return f"{extra or '(none)':14} {len(installed) - 2:3} distributions  {size / 1e6:6.1f} MB  {len(chosen)} packages"


def check_commands(folder: Path, wheel: Path) -> str:
    """Run the commands of a new user in an environment with the generator; return a line to print."""
    python = environment(folder, f"mcp-bindgen[generate] @ {wheel.as_uri()}")
    search = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    for command, shown in COMMANDS:
        done = execute(python.with_name("mcp-bindgen"), *command, cwd=folder, code=None, **search)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        assert shown in done.stdout + done.stderr, f"{command}: {done.stdout}{done.stderr}"
    return f"{len(COMMANDS)} commands of the installed wheel"


def typed_packages() -> list[str]:
    """Return the public packages that contain a `py.typed` marker, which also covers their subpackages."""
    return list(dict.fromkeys(re.sub(r"^(mcp_bindgen\.extensions)\..*", r"\1", name) for name in public_packages()))


def check_types(python: Path, packages: Sequence[str]) -> str:
    """Verify that the types of packages are complete; return a line to print."""
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(packages, pool.map(lambda package: untyped(python, package), packages), strict=True))
    assert not any(found.values()), {package: names[:5] for package, names in found.items() if names}
    return f"{len(packages)} packages with complete types"


def main() -> int:
    """Check the distributions in a folder and print the results; raise `AssertionError` if a check fails."""
    (wheel,), (sdist,) = (list(Path(sys.argv[1]).resolve().glob(f"mcp_bindgen-*{end}")) for end in (".whl", ".tar.gz"))
    if tag := os.environ.get("RELEASE_TAG"):
        check_release(tag, os.environ["RELEASE_REPOSITORY"], (ROOT / "CHANGELOG.md").read_text("utf-8"))
    check_metadata(wheel)
    check_contents(wheel, sdist)
    for file in (wheel, sdist):
        print(f"{file.name}  {file.stat().st_size / 1e6:.1f} MB, metadata and contents as in this checkout")
    extras = ["", *(extra for extra in project()["optional-dependencies"] if extra != "dev")]
    packages = public_packages()
    with TemporaryDirectory() as name, ThreadPoolExecutor(2) as pool:
        for line in pool.map(lambda extra: check_extra(Path(name, extra or "none"), wheel, extra, packages), extras):
            print(line, flush=True)
        print(check_commands(Path(name, "commands"), wheel))
        full = environment(Path(name, "types"), f"mcp-bindgen[{','.join(extras[1:])}] @ {wheel.as_uri()}")
        print(check_types(full, typed_packages()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
