"""Upgrade a project to another revision: generated files are made again, the owner's files are migrated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomlkit

from mcp_bindgen.conversion.steps import rules_of
from mcp_bindgen.diff import compare
from mcp_bindgen.diff.source import gates
from mcp_bindgen.emit.header import is_generated
from mcp_bindgen.emit.python import naming
from mcp_bindgen.emit.python.lowered import PythonProtocol
from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.ir import build
from mcp_bindgen.migrate import Migration, Skipped, migrate
from mcp_bindgen.migrate.files import files, python_files
from mcp_bindgen.migrate.imports import rewrite_imports
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.json import is_object
from mcp_bindgen.spec.kinds import TEXTS
from mcp_bindgen.spec.revisions import order
from mcp_bindgen.spec.transaction import Change, Changes, put, read

from .contracts import contracts
from .own_bindings import OwnBindings, own_bindings, refused_contract
from .project import TABLE, Project
from .replacement import Report, replace_generated

README = "README.md"
_APP = re.compile(rb"(?m)^(\w+ = App\([^()\n]+)\)$")
_IMPORT = re.compile(rb"(?m)^from mcp_bindgen\.app import [^(\n]+$")

_MAX_MENTION_BYTES = 1_000_000
"""Maximum size of a file that is searched for mentions of the old revision."""


@dataclass(frozen=True)
class Upgrade:
    """The changes that take a project to another revision, and the work that they leave to its owner.

    Attributes:
        project: The project as it is.
        old: The revision that is replaced.
        new: The revision that takes its place.
        changes: The files that change.
        generated: The changes of the generated files, if the project has some.
        migration: The changes of the owner's files, and the uses that are left.
        mentions: The lines that still name the old revision, e.g. in the README.
        capabilities: The lines of code that name a capability of the old revision, which the new one lacks.
        own: The bindings that the project gets, if the new revision is not part of mcp-bindgen.
    """

    project: Project
    old: str
    new: str
    changes: Changes
    generated: Report | None
    migration: Migration
    mentions: tuple[str, ...]
    capabilities: tuple[str, ...]
    own: OwnBindings | None = None

    @property
    def left(self) -> tuple[Skipped, ...]:
        """The owner's files that keep the old imports."""
        return self.migration.skipped

    @property
    def is_complete(self) -> bool:
        """True if nothing is left to change by hand."""
        kept = self.generated is not None and not self.generated.complete
        return not (self.left or kept or self.migration.uses or self.capabilities)

    def carry_out(self) -> None:
        """Put the changes in place, all or none; raise `BadInput` if that is not possible."""
        put(self.project.folder, self.changes, follow_links=True)


def upgrade(folder: Path, old: str, new: str, *, force: bool = False, store: Store | None = None) -> Upgrade:
    """Return the changes of an upgrade; nothing is written yet.

    Args:
        folder: The project.
        old: The revision to replace; if the project no longer lists it, only the owner's files change.
        new: The revision that takes its place.
        force: Move edited generated files aside.
        store: The `schema/` folder.

    Raises:
        BadInput: The folder has no project of ours, or its contract cannot be used.
    """
    store = store or Store()
    project = Project.read(folder)
    for part in (project.folder / "src", project.source, project.generated):
        if part.is_symlink():
            raise BadInput("is a link to a folder elsewhere", file=part, fix="upgrade the project that it belongs to")
    before, after = (lower(build(store.effective(revision))) for revision in (old, new))
    own = own_bindings(store, new, project.package) if store.is_users(new) else None
    if own is not None and project.contract is not None:
        raise refused_contract(new, f"mcp-bindgen upgrade {folder} --to REVISION")
    if own is not None and "sse" in project.transports and store.pin(new).era == "stateless":
        fix = "remove its endpoint and its tests, and take `sse` out of `transports` there"
        raise BadInput(f"MCP {new} has no HTTP+SSE", file=project.file, fix=fix)
    text = project.file.read_bytes().decode()
    revised = _revised(text, old, new, own)
    revisions = tuple(sorted({new if one == old else one for one in project.revisions}, key=order))
    generated, report = _generated(replace(project, revisions=revisions), force=force)
    target = own.package if own is not None else None
    rules, compared = rules_of(store, old, new), compare(before, after, gates=gates(store))
    migration = migrate(compared, folder, rewrite=True, without=project.generated, target=target, rules=rules)
    if own is not None:
        migration = _with_apps(project, migration, own, by_rules=bool(rules))
    changes = {**generated, **dict(_added(folder, own)), **migration.edited}
    if revised != text:
        changes[project.file.name] = Change(text.encode(), revised.encode())
    readme = read(folder / README)
    if readme is not None and (found := _described(readme, old, new, project.package, own)) != readme:
        changes[README] = Change(readme, found)
    names = "|".join(map(re.escape, (old, naming.package(old))))
    mentions = tuple(_lines(project, changes, rf"(?<![\w.-])({names})(?![\w-])"))
    lost = "|".join(map(re.escape, sorted(_capabilities(before) - _capabilities(after))))
    capabilities = tuple(_lines(project, changes, rf"capabilities.*[\"']({lost})[\"']", ".py")) if lost else ()
    return Upgrade(project, old, new, changes, report, migration, mentions, capabilities, own)


def _capabilities(protocol: PythonProtocol) -> set[str]:
    """Return the names of the capabilities of both sides, without their parts."""
    return {capability.name.split(".")[1] for capability in protocol.capabilities}


def added(project: Project, revision: str, *, force: bool = False) -> tuple[Changes, tuple[str, ...]]:
    """Return the changes for one more revision in the folder of a project, and the generated files that are left.

    Args:
        project: The project.
        revision: The revision.
        force: Move edited generated files aside.

    Raises:
        BadInput: The contract cannot be served in the revision.
    """
    wider = replace(project, revisions=tuple(sorted({*project.revisions, revision}, key=order)))
    changes, report = _generated(wider, force=force)
    text = project.file.read_text("utf-8")
    changes[project.file.name] = Change(text.encode(), wider.written(text).encode())
    return changes, report.kept if report is not None else ()


def _generated(project: Project, *, force: bool) -> tuple[dict[str, Change], Report | None]:
    """Return the changes of the generated files of a project, relative to its folder."""
    if project.contract is None:
        return {}, None
    made = contracts().generated_files(project)
    report = replace_generated(project.generated, made, force=force, dry_run=True)
    place = project.generated.relative_to(project.folder)
    return {(place / name).as_posix(): change for name, change in report.changes(made).items()}, report


def replaced(project: Project, old: str | None, new: str, store: Store) -> str | None:
    """Return the revision to replace: the oldest, unless `old` names one; `None` if there is nothing to do.

    Raises:
        BadInput: There is no such revision, or the project does not speak `old`, or it speaks both.
    """
    owned = {name for name in project.revisions if (project.source / naming.package(name)).is_dir()}
    for revision in (new, *([old] if old else []), *project.revisions):
        if revision not in owned:
            store.pin(revision)
    if old == new or (old is None and new in project.revisions):
        return None
    known = ", ".join(project.revisions)
    old = old or project.revisions[0]
    if old in owned:
        package = f"{project.package}.{naming.package(old)}"
        raise BadInput(
            f"{package}, the bindings of MCP {old}, are the project's own",
            file=project.file,
            fix=f"see what to change: mcp-bindgen migrate schema/{old}.json {new} . --package {package}",
        )
    if old in project.revisions and new in project.revisions:
        raise BadInput(
            f"the project speaks both {old} and {new}",
            file=project.file,
            fix=f"to drop {old}, take it out of `revisions` there, and out of your code",
        )
    if old not in project.revisions and new not in project.revisions:
        raise BadInput(f"the project does not speak {old}", file=project.file, fix=f"it speaks {known}")
    return old


def remaining(project: Project, store: Store) -> dict[str, str]:
    """Return the owner's files that use bindings of a revision that the project does not speak -> that revision."""
    found: dict[str, str] = {}
    for path in python_files(project.folder):
        raw = path.read_bytes()
        for revision in sorted(store.pins.keys() - {*project.revisions}):
            if not is_generated(raw) and rewrite_imports(raw, naming.package(revision), "another").lines:
                found[path.relative_to(project.folder).as_posix()] = revision
    return found


def _lines(project: Project, changes: Mapping[str, Change], pattern: str, suffix: str = "") -> Iterator[str]:
    """Yield the lines of the owner's files, all or those with a suffix, that match a pattern after the changes."""
    wanted = re.compile(pattern)
    for path in files(project.folder):
        place = path.relative_to(project.folder).as_posix()
        if path.is_symlink() or path.suffix == ".lock" or path.stat().st_size > _MAX_MENTION_BYTES:
            continue
        if not place.endswith(suffix):
            continue
        change = changes.get(place)
        raw = (change.after if change is not None else path.read_bytes()) or b""
        if not is_generated(raw) and project.generated not in path.parents:
            for number, line in enumerate(raw.decode("utf-8", errors="ignore").split("\n"), 1):
                if wanted.search(line):
                    yield f"{place}:{number}"


def _added(folder: Path, own: OwnBindings | None) -> Iterator[tuple[str, Change]]:
    """Yield the files of the bindings that a project gets; raise `BadInput` if a file of the user is in the way."""
    for name, content in own.files.items() if own is not None else ():
        before = read(folder / name)
        if before not in (None, content.encode()) and not is_generated(before or b""):
            raise BadInput(
                "is in the way of the schema or the bindings of a revision", file=folder / name, fix="move it"
            )
        if before != content.encode():
            yield name, Change(before, content.encode())


def _with_apps(project: Project, migration: Migration, own: OwnBindings, *, by_rules: bool) -> Migration:
    """Return the migration in which each `App` serves the new revision too, or is left to the owner.

    It serves the bindings of the project. An App does not know the rules of `bridges.toml`: if there are some, it
    serves the revisions of the installation, and the bridges of the author convert.
    """
    above, _, name = own.package.rpartition(".")
    imports = f"from mcp_bindgen.runtime.bindings import installed\n\nfrom {above} import {name}"
    served, need = rf"\1, revisions=[*installed(), {name}])", f"revisions=[*installed(), {name}]"
    if by_rules:
        imports, served, need = "from mcp_bindgen.user_bindings import install", r"install()\n\1)", "install()"
    edited, left = {**migration.edited}, [*migration.skipped]
    for path in python_files(project.source):
        place = path.relative_to(project.folder).as_posix()
        change = edited.get(place) or Change(raw := path.read_bytes(), raw)
        text = change.after or b""
        is_done = b"revisions=" in text or need.encode() in text
        if re.search(rb"\bApp\(", text) and not is_done and not is_generated(text):
            found, are_imported = _IMPORT.subn(rb"\g<0>\n" + imports.encode(), text, count=1)
            found, are_served = _APP.subn(served.encode(), found)
            if are_imported and are_served:
                edited[place] = replace(change, after=found)
            else:
                left.append(Skipped(str(path), f"has an App that needs `{need}`"))
    return replace(migration, edited=edited, skipped=tuple(left))


def _described(readme: bytes, old: str, new: str, package: str, own: OwnBindings | None) -> bytes:
    """Return a README whose first sentence names another revision, and whose list of files has the bindings."""
    text = readme.decode(errors="surrogateescape")
    found = re.sub(rf"(?m)^(An MCP (?:server|client)\. It .*\bMCP ){re.escape(old)}\b", rf"\g<1>{new}", text)
    if own is not None and own.described not in found:
        found = found.replace(yours := f"    src/{package}/    yours\n", own.described + yours)
    return found.encode(errors="surrogateescape")


def _revised(text: str, old: str, new: str, own: OwnBindings | None) -> str:
    """Return the text of a `pyproject.toml` with another revision, and everything else as it was."""
    document = tomlkit.parse(text)
    listed: Any = document["tool"][TABLE]["revisions"]
    for index, one in enumerate(listed):
        if one == old:
            listed[index] = tomlkit.string(new, literal=one.as_string().startswith("'"))
    ruff: Any = document["tool"].get("ruff")
    if own is not None and is_object(ruff) and TEXTS.fits(excluded := ruff.setdefault("extend-exclude", [])):
        excluded += [own.folder] if own.folder not in excluded else []
    return tomlkit.dumps(document)
