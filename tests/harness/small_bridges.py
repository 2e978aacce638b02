"""Bridges between two small schemas, with rules: planned, generated and loaded without a package."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp_bindgen.bridging.chain import Step
from mcp_bindgen.conversion.source import models
from mcp_bindgen.emit.emitter import Options
from mcp_bindgen.emit.python.bridges import emit
from mcp_bindgen.spec import Store, Upstream
from tests.harness.commands import save
from tests.harness.small_schemas import small

OLD, NEW = "2026-01-01", "2026-02-01"
UP, DOWN = f'["{OLD} -> {NEW}"]\n', f'["{NEW} -> {OLD}"]\n'


def store(folder: Path, before: Mapping[str, Any], after: Mapping[str, Any], rules: str) -> Store:
    """Return a store with two revisions of a small schema, of which the definitions are given, and their rules."""
    (folder / "schema").mkdir(parents=True)
    for name in ("semantics", "docs", "patches"):
        (folder / "schema" / f"{name}.toml").touch()
    for revision, definitions in ((OLD, before), (NEW, after)):
        file = save(folder / f"{revision}.json", small(dict(definitions)))
        Store(folder / "schema").add(revision, Upstream(file, status="draft"), prose=True)
    (folder / "schema" / "bridges.toml").write_text(rules, "utf-8")
    return Store(folder / "schema")


def steps(given: Store) -> tuple[Step, Step]:
    """Return the generated steps, up and down."""
    files: dict[str, str] = {}
    for model in models(given):
        files |= emit(model, Options("bridges", "generate", joins_installed=True))
    made: list[Step] = []
    for name in (f"v{OLD}_to_v{NEW}.py", f"v{NEW}_to_v{OLD}.py"):
        scope: dict[str, Any] = {}
        exec(files[name.replace("-", "_")], scope)
        made.append(scope["STEP"])
    return made[0], made[1]
