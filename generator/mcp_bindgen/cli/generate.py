"""`mcp-bindgen generate`: generate bindings from schemas."""

from __future__ import annotations

import time
from pathlib import Path

from mcp_bindgen.emit import Bridges, Target, Update, update
from mcp_bindgen.spec.errors import near

from .options import Force
from .output import say_decisions, say_incomplete, say_missing
from .packages import Packages
from .terminal import StatusLine, say


def generate(packages: Packages, force: Force = False) -> None:
    """Generate bindings: one line for each revision.

    Without arguments, the packages of the project's `mcp-bindgen.toml` are generated.

    Examples:

    `mcp-bindgen generate` without a project regenerates all revisions of this checkout, else those in your own folder.

    `mcp-bindgen generate 2025-11-25 --out src --package acme.mcp` writes bindings of your own to src/acme/mcp/.

    `mcp-bindgen generate --schema draft.json --revision draft --out src --package acme_draft` takes any schema file.

    `mcp-bindgen generate 2026-07-28 --extension tasks` regenerates the bindings of an extension of that revision.

    `mcp-bindgen generate 2026-07-28 --extension jobs.json --semantics jobs.toml --out src --package acme_jobs`

    `mcp-bindgen generate --schema git:../spec@main:schema/draft/schema.json --revision draft --out src --package acme`
    """
    targets = packages.targets()
    for target in targets:
        start = time.perf_counter()
        with StatusLine(f"generating {target.name}"):
            say_decisions(target)
            made = update(target, force=force)
        say(_line(target, made, time.perf_counter() - start))
        say_incomplete(target.protocol)
    for steps in targets[0].emitter.bridges_of(targets):
        start = time.perf_counter()
        with StatusLine("generating bridges"):
            made = update(steps)
            steps.write_page()
        say_missing(steps)
        say(_bridges_line(steps, made, time.perf_counter() - start))


def _line(target: Target, made: Update, seconds: float) -> str:
    definitions, methods = target.counts
    return f"{target.name}  {definitions:3} definitions  {methods:2} methods  {_made(made, seconds, target.folder)}"


def _bridges_line(steps: Bridges, made: Update, seconds: float) -> str:
    rules = sum(place.rule is not None for plan in steps.plans for place in plan.places)
    return f"bridges  {len(steps.plans)} steps  {rules} places with a rule  {_made(made, seconds, steps.folder)}"


def _made(made: Update, seconds: float, folder: Path) -> str:
    files = f"{made.files} file{'' if made.files == 1 else 's'}"
    return f"{files}  {seconds:.1f} s  {near(folder)}{'' if made.changed else ' (unchanged)'}"
