"""Revisions of the user: a schema and its bindings in the user's folder, both or neither."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from mcp_bindgen.conversion.steps import FILE as RULES
from mcp_bindgen.emit.python import naming
from mcp_bindgen.spec import BadInput, DiagnosticContext, Pin, Store, Upstream, sources
from mcp_bindgen.spec.errors import locating
from mcp_bindgen.spec.revisions import check_name
from mcp_bindgen.spec.store import user_folder
from mcp_bindgen.spec.transaction import Change, put, read
from mcp_bindgen.user_bindings import bindings_folder, unsafe

from ..emitter import BRIDGES, Bindings
from ..writer import changes_of
from .installation import bridges, target_of
from .plugin import EMITTER
from .trial import try_import


def import_revision(revision: str, upstream: Upstream) -> tuple[Pin, Bindings]:
    """Import a schema file into the user's folder and generate its bindings there; an error leaves all as it was.

    Args: as `Store.add`.

    Returns:
        The pin, and the generated package.

    Raises:
        BadInput: The file cannot be used, the name is taken, or the folder is not the user's alone.
    """
    home, known, given = user_folder(), Store(), sources.read(upstream.file)
    if home is None:
        raise BadInput("Python leaves out the folders of the user", fix="run it without -s, -I and PYTHONNOUSERSITE")
    _refuse_taken(revision, known)
    schemas = home / "schema"
    with TemporaryDirectory(prefix="mcp-bindgen.") as name:
        scratch = Path(name)
        for path in (schemas / "revisions.toml", schemas / RULES, *(schemas / revision).glob("*.toml")):
            if path.exists():
                (scratch / path.relative_to(schemas)).parent.mkdir(exist_ok=True)
                shutil.copyfile(path, scratch / path.relative_to(schemas))
        pin = Store(scratch).add(revision, replace(upstream, file=given), prose=True)
        store = Store(users=scratch, strict=upstream.context is None or upstream.context.strict)
        target = target_of(EMITTER, store, revision)
        effective = target.source
        named = DiagnosticContext(given.label, strict=effective.context.strict)
        target = replace(target, source=replace(effective, file=given.label, context=named))
        files = target.render()
        with locating(given.label):
            try_import(files)
        steps = bridges(EMITTER, store, target.folder.parent, users=revision)
        modules = steps.render()
        paths = sorted(path for path in scratch.rglob("*") if path.is_file())
        texts = {f"schema/{path.relative_to(scratch).as_posix()}": path for path in paths}
        changes = {name: Change(read(home / name), path.read_bytes()) for name, path in texts.items()}
    changes |= _placed(home, target, files)
    for name, text in modules.items():
        path = steps.folder / name
        changes[path.relative_to(home).as_posix()] = Change(read(path), text.encode())
    put(home, changes)
    return pin, target


def remove_revision(revision: str) -> None:
    """Remove a revision and its bindings from the user's folder.

    Raises:
        BadInput: There is no such revision, it is part of the installation, or the files cannot be removed.
    """
    store, bindings = Store(), bindings_folder()
    if store.users is None or bindings is None or revision not in store.users_pins:
        store.pin(revision)
        raise BadInput(
            f"MCP {revision} is part of this installation",
            fix="name a revision that you have imported; --folder DIR removes from another folder",
        )
    Store(store.users).remove(revision)
    if (bindings / naming.package(revision)).is_dir():
        shutil.rmtree(bindings / naming.package(revision))
    package = naming.package(revision)
    for steps in (f"{package}_to_*.py", f"*_to_{package}.py"):
        for path in (bindings / BRIDGES).glob(steps):
            path.unlink()


def _refuse_taken(revision: str, store: Store) -> None:
    """Refuse the name of a revision of the installation, and a name with the same package as another revision."""
    check_name(revision, draft=True)
    for other in store.pins:
        is_same = other == revision
        if is_same and not store.is_users(other):
            raise BadInput(
                f"MCP {revision} is part of this installation",
                fix="compare the file with it: mcp-bindgen schema verify, or import it under another name",
            )
        if not is_same and naming.package(other).casefold() == naming.package(revision).casefold():
            raise BadInput(
                f"the bindings of {revision!r} and {other!r} would both be {naming.package(other)}",
                fix="choose another name",
            )


def _placed(home: Path, target: Bindings, files: Mapping[str, str]) -> dict[str, Change]:
    """Return the changes that put bindings into the user's folder, which only the user can write to.

    Raises:
        BadInput: Another user could have written the files there.
    """
    folder = bindings_folder()
    assert folder is not None
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in (folder.parent, folder):
            path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot be written ({error.strerror})", file=home, fix="set MCP_BINDGEN_HOME") from None
    objection = unsafe(target.folder)
    if objection is not None:
        raise BadInput(f"the bindings would not be imported: {objection}")
    place = target.folder.relative_to(home).as_posix()
    return {f"{place}/{name}": change for name, change in changes_of(target.folder, files).items()}
