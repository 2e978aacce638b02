"""The Python packages of this installation: in a checkout, or in the folder of the user."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mcp_bindgen.spec import BadInput, EffectiveSchema, ExtensionSchema, Store, extend
from mcp_bindgen.spec.errors import printable
from mcp_bindgen.user_bindings import bindings_folder

from ..emitter import BRIDGES, Bindings, Bridges, Emitter, Options, Target
from ..requested import OWN_PLACE, is_schema_file
from . import naming

NAMESPACE = "mcp_bindgen"
_ROOT = Path(__file__).resolve().parents[4]


def is_checkout() -> bool:
    """Return True if this is a checkout, which has the schemas and writable bindings."""
    return (_ROOT / "generated" / NAMESPACE).is_dir() and (_ROOT / "pyproject.toml").exists()


def installed(emitter: Emitter, store: Store, revisions: Sequence[str], extensions: Sequence[str]) -> list[Target]:
    """Return packages of this checkout, or of the revisions of the user, and their conversions after them.

    Args:
        emitter: The emitter of Python.
        store: The revisions.
        revisions: The revisions to generate; if empty, all of this checkout, else all of the user.
        extensions: The extensions of `revisions` to generate instead of them.

    Raises:
        BadInput: A revision or extension is unknown, or its bindings are part of an installation.
    """
    if not extensions:
        found = [target_of(emitter, store, revision) for revision in revisions or _all_revisions(store)]
        cores = [target.source for target in found if target.is_installed and not revisions]
        extensions_of = (_extension_of(emitter, core, extension) for core in cores for extension in _ours(store, core))
        folders = {target.folder.parent: not target.is_installed for target in found}
        steps = (bridges(emitter, store, folder, users=users) for folder, users in folders.items())
        return [*found, *extensions_of, *steps]
    if not revisions:
        raise BadInput(
            "--extension needs the revision that it extends",
            fix="name it, as in: mcp-bindgen generate REVISION --extension NAME",
        )
    return [_installed_extension(emitter, store, revision, name) for revision in revisions for name in extensions]


def target_of(emitter: Emitter, store: Store, revision: str) -> Bindings:
    """Return the package of an imported revision: in the folder of the user, or in this checkout.

    Raises:
        BadInput: The revision is unknown, or its bindings are part of an installation.
    """
    module, is_users = naming.package(revision), store.is_users(revision)
    users = bindings_folder() if is_users else None
    folder = (users or _checkout() / NAMESPACE) / module
    options = Options(f"{NAMESPACE}.{module}", f"mcp-bindgen generate {revision}")
    return Bindings(emitter, folder, options, store.effective(revision), is_installed=not is_users)


def bridges(emitter: Emitter, store: Store, folder: Path, *, users: bool | str) -> Bridges:
    """Return the package of conversions in the folder of the packages of revisions.

    Args:
        emitter: The emitter of Python.
        store: The revisions.
        folder: Folder of the packages, in this checkout or of the user.
        users: As in `Bridges`.
    """
    ours = (store.effective(name) for name in store.pins if not store.is_users(name))
    rows = [(one.revision, one.era == "stateless", one.draft) for one in ours]
    known = tuple(sorted(rows, key=lambda row: (not row[2], row[0])))
    options = Options(BRIDGES, "mcp-bindgen generate", joins_installed=bool(users), revisions=known)
    page = None if users else _ROOT / "docs" / "explanation" / "bridges.md"
    return Bridges(emitter, folder / BRIDGES, options, store, users, page, is_installed=not users)


def _checkout() -> Path:
    """Return the `generated/` folder of this checkout; raise `BadInput` outside of one."""
    if not is_checkout():
        raise BadInput("this installation has no generated/ folder", fix=OWN_PLACE)
    return _ROOT / "generated"


def _all_revisions(store: Store) -> list[str]:
    """Return the revisions of this checkout, else the revisions of the user."""
    users = [revision for revision in store.pins if store.is_users(revision)]
    if users and not is_checkout():
        return users
    return [revision for revision in store.pins if revision not in users]


def _extension_of(emitter: Emitter, core: EffectiveSchema, extension: ExtensionSchema) -> Target:
    """Return the package of an extension, below the package of the revision that it extends, in this checkout."""
    revision = f"{NAMESPACE}.{naming.package(core.revision)}"
    options = Options(
        f"{revision}.extensions.{extension.module}",
        f"mcp-bindgen generate {core.revision} --extension {extension.module}",
        extension=extension.id,
        core=revision,
    )
    folder = _checkout().joinpath(*options.package.split("."))
    return Bindings(emitter, folder, options, extend(core, extension), extension=extension, is_installed=True)


def _installed_extension(emitter: Emitter, store: Store, revision: str, name: str) -> Target:
    core = store.effective(revision)
    if not store.is_extension(name) and is_schema_file(name):
        raise BadInput(f"{printable(name)} is no extension of this installation", fix=OWN_PLACE)
    extension = store.extension_schema(name, core)
    if extension.version not in [ours.version for ours in _ours(store, core) if ours.id == extension.id]:
        raise BadInput(f"{extension.label} is not the version that this installation has bindings of", fix=OWN_PLACE)
    return _extension_of(emitter, core, extension)


def _ours(store: Store, core: EffectiveSchema) -> list[ExtensionSchema]:
    """Return the extensions of a revision with bindings in this checkout."""
    found = store.extensions_of(core)
    return [one for one in found if isinstance(one.file, Path) and one.file.is_relative_to(store.root)]
