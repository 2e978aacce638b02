"""Generated npm packages of all revisions and extensions, and of revisions that do not exist."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen.spec import Store
from tests.harness.commands import ROOT, inside, save
from tests.harness.forks import PYTHON
from tests.harness.next_revision import FACTS, NAME, next_revision
from tests.harness.pages import blocks
from tests.harness.proposal import NEW
from tests.harness.proposal import schema as proposal
from tests.harness.shared import alone
from tests.interop.processes import node

HERE = Path(__file__).parent
REVISIONS = list(Store().pins)
DRAFTS = {NAME: next_revision, NEW: proposal}
"""Revisions that do not exist, with their schemas."""

Document = tuple[str, str, str]
"""Package, definition and JSON text of a document."""

Verdict = tuple[str | None, str | None]
"""The fault of a document, and its text after parsing and writing; one of them is None."""


@cache
def packages() -> Path:
    """Return the folder of the packages; one process of a test run generates them for all processes."""
    folder = Path(PYTHON).with_name("typescript")
    with alone(folder.with_name("typescript-is-generated")) as is_new:
        if is_new:
            _generate(folder)
            folder.with_name("typescript-is-generated").touch()
    return folder


def _generate(folder: Path) -> None:
    folder.mkdir()
    facts = folder / "facts.toml"
    facts.write_text(FACTS, "utf-8")
    schema, proposed = save(folder / "next.json", next_revision()), save(folder / "proposal.json", proposal())
    for words in (
        (),
        *(("2026-07-28", "--extension", name) for name in ("tasks", "skills", "apps")),
        ("--schema", schema, "--revision", NAME, "--semantics", facts),
        ("--schema", proposed, "--revision", NEW),
    ):
        inside("generate", *words, "--language", "typescript", "--out", folder, code=0)


def definitions(revision: str) -> dict[str, Any]:
    """Return the definitions of the schema of a package."""
    if revision in DRAFTS:
        found: dict[str, Any] = DRAFTS[revision]()["$defs"]
        return found
    return dict(Store().effective(revision).definitions)


def judge(documents: Iterable[Document]) -> list[Verdict]:
    """Validate documents with the generated packages, in one process."""
    lines = "".join(json.dumps(one) + "\n" for one in documents)
    command = [node(), str(HERE / "judge.mjs"), str(packages())]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[Verdict] = [tuple(json.loads(line)) for line in done.stdout.split("\n")[:-1]]
    return found


def project() -> Path:
    """Return the folder of the packages with the programs and npm packages of this folder beside them."""
    folder = packages()
    with alone(folder / "programs") as is_new:
        if not is_new:
            return folder
        missing = "the npm packages are not installed: npm ci --prefix tests/typescript"
        if not (HERE / "node_modules" / "typescript").is_dir():
            pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
        (folder / "node_modules").symlink_to(HERE / "node_modules")
        shutil.copytree(HERE / "programs", folder / "programs")
        save(folder / "package.json", {"type": "module"})
        page = blocks(ROOT / "docs" / "how-to" / "typescript.md")
        (folder / "programs" / "page.ts").write_text("".join(one.text for one in page if one.language == "typescript"))
        paths = {"mcp-2025-11-25": ["./mcp-2025-11-25/index.ts"]}
        compiler = {"noEmit": True, "types": ["node"], "skipLibCheck": True, "paths": paths}
        extended = "./mcp-2025-11-25/tsconfig.json"
        included = ["mcp-*/*.ts", "programs/*.ts"]
        save(folder / "tsconfig.json", {"extends": extended, "compilerOptions": compiler, "include": included})
    return folder
