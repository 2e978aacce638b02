"""Put bugs into a copy of the product, one at a time, and list the bugs that the tests find: `make mutants`.

Half of the bugs stand in `bugs.toml`, the rest is drawn with a fixed seed. For each bug, the tests that `bugs.toml`
names for its module run, then the nearest ones until a test fails: modules named after the changed module, then modules
that import it, then tests of its package. With `--full`, survivors meet the tests of these modules that `make test`
leaves out; with `--wide`, the quick suite. Bugs without an effect stand in `bugs.toml`, with the reason.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.harness.commands import ROOT, SOURCE_ROOTS
from tests.mutants.drawn import Mutant, draw

NEAREST = {"testing": ["mock", "test_extensions_page.py", "test_examples.py", "scaffold"]}
"""Package -> tests about it, where their folder has another name."""

SECONDS = 900
"""After which a bug counts as found: something hangs."""


def copy(folder: Path) -> Path:
    """Bring a copy of the files that git knows up to date; return the interpreter of its own environment.

    What a run before has compiled in the copy is used again.
    """
    tree = folder / "tree"
    listed = subprocess.check_output(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, text=True)
    names = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for name in names:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if not (tree / name).is_file() or _state(tree / name) != _state(ROOT / name):
            shutil.copy2(ROOT / name, tree / name)
    for top in (*SOURCE_ROOTS, "tests"):
        for path in (tree / top).rglob("*.py"):
            if path.relative_to(tree).as_posix() not in names and "node_modules" not in path.parts:
                path.unlink()
    for modules in ROOT.glob("**/node_modules"):
        place = modules.relative_to(ROOT)
        if not {"node_modules", ".venv", "build"} & {*place.parent.parts} and not (tree / place).is_symlink():
            (tree / place).symlink_to(modules)
    python = tree / ".venv" / "bin" / "python"
    if not python.exists():
        _environment(tree, python)
    return python


def _state(path: Path) -> tuple[int, int]:
    return path.stat().st_size, path.stat().st_mtime_ns


def _environment(tree: Path, python: Path) -> None:
    """Make an environment with the commands and packages of this one, and the product of the copy."""
    venv.create(tree / ".venv", symlinks=True)
    scripts = Path(sys.executable).parent
    for script in scripts.iterdir():
        if script.is_file() and not script.is_symlink() and not (python.parent / script.name).exists():
            data = script.read_bytes().replace(os.fsencode(scripts), os.fsencode(python.parent))
            (python.parent / script.name).write_bytes(data)
            (python.parent / script.name).chmod(0o755)
    shared = Path(sysconfig.get_path("purelib"))
    paths = [*(tree / name for name in SOURCE_ROOTS), shared]
    own = tree / ".venv" / shared.relative_to(sys.prefix)
    (own / "copy.pth").write_text("".join(f"{path}\n" for path in paths), "utf-8")


def nearest(tree: Path, mutant: Mutant) -> list[Path]:
    """Return the test modules of a bug, the nearest first."""
    path = Path(mutant.file)
    parts = path.with_suffix("").parts[1:]
    module, package, stem = ".".join(parts), parts[1], path.stem
    folders = [tree / "tests" / name for name in NEAREST.get(package, [package])]
    own = [one for folder in folders for one in ([folder] if folder.is_file() else sorted(folder.rglob("test_*.py")))]
    every = [one for one in sorted((tree / "tests").rglob("test_*.py")) if "node_modules" not in one.parts]
    imported = re.compile(rf"\b{re.escape(module)}\b|from {re.escape('.'.join(parts[:-1]))} import .*\b{stem}\b")
    named = [one for one in every if one.stem == f"test_{stem}"]
    users = [one for one in every if imported.search(one.read_text("utf-8"))]
    words = [one for one in own if re.search(rf"\b{stem}\b", one.read_text("utf-8"))]
    return list(dict.fromkeys([*named, *users, *words, *own]))


def run(tree: Path, python: Path, tests: Sequence[Path], *options: str) -> str | None:
    """Run tests until one fails; return its name, or None if all pass."""
    command = [str(python), "-m", "pytest", "-q", "-x", "--tb=no"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONDONTWRITEBYTECODE"] = ""
    with subprocess.Popen(
        [*command, *options, *map(str, tests)],
        cwd=tree,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return "nothing ends"
    if process.returncode in (0, 5):
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", said, re.MULTILINE)
    return failed[1] if failed else said.strip().splitlines()[-1]


def find(tree: Path, python: Path, mutant: Mutant, tests: Sequence[str], options: argparse.Namespace) -> str | None:
    """Return the test that finds a bug, or None; the modules `tests` run first."""
    path, first = tree / mutant.file, [tree / "tests" / name for name in tests]
    text, times = path.read_bytes(), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    end = mutant.offset + len(mutant.old.encode())
    assert text[mutant.offset : end] == mutant.old.encode(), mutant
    path.write_bytes(text[: mutant.offset] + mutant.new.encode() + text[end:])
    try:
        others = [one for one in nearest(tree, mutant) if one not in first][: options.modules]
        found = (run(tree, python, first) if first else None) or run(tree, python, others)
        if found is None and options.full:
            found = run(tree, python, [*first, *others], "-m", "full")
        return run(tree, python, [], "-n", "auto", "--dist", "worksteal") if found is None and options.wide else found
    finally:
        path.write_bytes(text)
        os.utime(path, ns=times)  # the compiled module of the unchanged text stays valid


def by_hand(bugs: Mapping[str, Any]) -> list[Mutant]:
    """Return the bugs that stand in the file; each must name one place."""
    found = []
    for bug in bugs["bug"]:
        text = (ROOT / bug["file"]).read_bytes()
        assert text.count(bug["old"].encode()) == 1, f"{bug['file']}: {text.count(bug['old'].encode())} x {bug['old']}"
        found.append(Mutant(bug["file"], text.index(bug["old"].encode()), bug["old"], bug["new"]))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Do the tests find bugs?")
    parser.add_argument("--drawn", type=int, default=60, help="number of bugs to draw")
    parser.add_argument("--kind", choices=["hand", "drawn"], help="only bugs of one kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only the bugs whose file and change match this expression")
    parser.add_argument("--modules", type=int, default=12, help="number of test modules that are near")
    parser.add_argument("--full", action="store_true", help="run the long tests of near modules for survivors")
    parser.add_argument("--wide", action="store_true", help="run the quick suite for survivors")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutants")
    options = parser.parse_args()
    bugs = tomllib.loads((Path(__file__).with_name("bugs.toml")).read_text("utf-8"))
    roots = [ROOT / name / "mcp_bindgen" for name in SOURCE_ROOTS if name != "generated"]
    packages = [one for root in roots for one in root.iterdir() if one.name[0].isalpha()]
    folders = sorted(one.relative_to(ROOT).as_posix() for one in packages if one.is_dir())
    mutants = {"hand": by_hand(bugs), "drawn": draw(ROOT, folders, options.drawn, options.seed)}
    equal = {(one["file"], one["old"], one["new"]): one["reason"] for one in bugs.get("equivalent", ())}
    tree, python = options.out.absolute() / "tree", copy(options.out.absolute())
    counts: Counter[str] = Counter()
    for kind, all_ in mutants.items():
        for mutant in all_:
            change = f"{' '.join(mutant.old.split())[:60]} -> {' '.join(mutant.new.split())[:60]}"
            if options.kind not in (None, kind) or re.search(options.only, f"{mutant.file} {change}") is None:
                continue
            reason = equal.get((mutant.file, mutant.old, mutant.new))
            found = None if reason else find(tree, python, mutant, bugs["tests"].get(mutant.file, ()), options)
            state = "equivalent" if reason else "found" if found else "SURVIVES"
            counts[state] += 1
            line = (ROOT / mutant.file).read_bytes()[: mutant.offset].count(b"\n") + 1
            print(f"{state} | {kind} | {mutant.file}:{line} | {change} | {reason or found or ''}", flush=True)
    print(", ".join(f"{count} {state}" for state, count in counts.items()))
    return 1 if counts["SURVIVES"] else 0


if __name__ == "__main__":
    sys.exit(main())
