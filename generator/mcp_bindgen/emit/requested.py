"""Decide what a command line asks for: packages of this installation, or bindings of the user's own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from keyword import iskeyword
from pathlib import Path

from mcp_bindgen.spec import (
    BadInput,
    EffectiveSchema,
    Extensions,
    ExtensionSchema,
    Store,
    extend,
    external,
    read_extension,
    sources,
)
from mcp_bindgen.spec.errors import printable
from mcp_bindgen.spec.semantics import merge_semantics, read_semantics
from mcp_bindgen.spec.sources import Readable

from .target import Target, all_revisions, extension_of, target_of

_OWN_PLACE = "give --out DIR and --package NAME"


def targets(
    revisions: Sequence[str],
    *,
    out: Path | None = None,
    package: str | None = None,
    schema: Readable | None = None,
    name: str | None = None,
    semantics: Path | None = None,
    only: tuple[str, ...] = (),
    folder: Path | None = None,
    strict: bool = False,
    extensions: Sequence[str] = (),
) -> list[Target]:
    """Return the packages that a command line asks for.

    Args:
        revisions: The revisions to generate; none means all of this checkout with their extensions, else all that the
            user keeps.
        out: The folder to put a package of the user's own into.
        package: That package's import name.
        schema: The source of a schema file to generate from, instead of a revision of ours.
        name: What to call the revision of `schema`.
        semantics: A file of the form of `semantics.toml`: its entries are added to ours, or the facts of an extension.
        only: The capabilities to restrict the bindings to.
        folder: Another `schema/` folder than ours.
        strict: Whether drafts are refused where they break a rule.
        extensions: The extensions of the revisions to generate instead of them: names, or sources of schema files.

    Raises:
        BadInput: The arguments do not fit together, or a revision or extension is unknown.
    """
    store = Store(folder, strict=strict)
    given = {"--schema": schema, "--revision": name, "--only": only or None}
    for option in (option for option, value in given.items() if extensions and value is not None):
        raise BadInput(f"--extension is about a revision that is installed, {option} is not", fix=f"leave out {option}")
    if schema is not None and (revisions or name is None):
        raise BadInput("--schema takes the place of a revision", fix="name it with --revision NAME")
    if schema is None and (name is not None or (semantics is not None and not extensions)):
        raise BadInput(
            "--revision and --semantics describe the file of --schema, or --semantics that of --extension",
            fix="give --schema FILE or --extension FILE",
        )
    own = out is not None or package is not None
    if own and (out is None or package is None or (schema is None and len(revisions) != 1) or len(extensions) > 1):
        what = "one extension of one revision" if extensions else "one revision"
        raise BadInput(f"bindings of your own need --out DIR, --package NAME and {what}", fix="give all three")
    if (schema is not None or only or folder is not None) and not own:
        raise BadInput("--schema, --folder and --only are for bindings of your own", fix=_OWN_PLACE)
    if package is not None and not all(part.isidentifier() and not iskeyword(part) for part in package.split(".")):
        raise BadInput(f"{package!r} is not the name of a package", fix="use letters, digits, _ and dots, no keywords")
    if name is not None and not re.fullmatch(r"[\w.+-]+", name):
        raise BadInput(f"{name!r} is not the name of a revision", fix="use letters, digits and . _ + -")
    if out is None or package is None:
        if semantics is not None:
            raise BadInput("--semantics is for bindings of your own", fix=_OWN_PLACE)
        return _installed(store, revisions, extensions)
    extension: ExtensionSchema | None = None
    if schema is None or name is None:
        source, words = store.effective(revisions[0]), [revisions[0]]
        words += ["--folder", _near(folder)] if folder is not None else []
        if extensions:
            extension, more = _own_extension(store, source, extensions[0], semantics)
            source, words = extend(source, extension), [*words, *more]
    else:
        facts = merge_semantics(store.semantics, read_semantics(semantics)) if semantics else store.semantics
        file = sources.read(schema)
        source = external(file, name, facts, store.ledger, strict=store.strict)
        words = ["--schema", _argument(str(schema), file), "--revision", name]
    words += ["--semantics", _near(semantics)] if semantics else []
    words += ["--out", _near(out), "--package", package, *(["--only", ",".join(only)] if only else [])]
    command = shlex.join(["mcp-bindgen", "generate", *words])
    if sources.STDIN in (schema, *extensions):
        command += "  # with the schema file as standard input"
    return [Target(source, out.joinpath(*package.split(".")), package, only, command, extension=extension)]


def _installed(store: Store, revisions: Sequence[str], extensions: Sequence[str]) -> list[Target]:
    """Return packages of this checkout, or of the user's revisions."""
    if not extensions:
        found = [target_of(store, revision) for revision in revisions or all_revisions(store)]
        cores = [target.source for target in found if target.is_tested and not revisions]
        return [*found, *(extension_of(core, extension) for core in cores for extension in _ours(store, core))]
    if not revisions:
        raise BadInput(
            "--extension needs the revision that it extends",
            fix="name it, as in: mcp-bindgen generate REVISION --extension NAME",
        )
    return [
        _installed_extension(store, store.effective(revision), name) for revision in revisions for name in extensions
    ]


def _installed_extension(store: Store, core: EffectiveSchema, name: str) -> Target:
    known = Extensions(store)
    if not known.is_extension(name) and _is_file(name):
        raise BadInput(f"{printable(name)} is no extension of this installation", fix=_OWN_PLACE)
    extension = known.effective(name, core)
    if extension.version not in [ours.version for ours in _ours(store, core) if ours.id == extension.id]:
        raise BadInput(f"{extension.label} is not the one whose bindings are part of the installation", fix=_OWN_PLACE)
    return extension_of(core, extension)


def _ours(store: Store, core: EffectiveSchema) -> list[ExtensionSchema]:
    """Return the extensions of a revision that this checkout has bindings of."""
    found = Extensions(store).of(core)
    return [one for one in found if isinstance(one.file, Path) and one.file.is_relative_to(store.root)]


def _own_extension(
    store: Store, core: EffectiveSchema, name: str, semantics: Path | None
) -> tuple[ExtensionSchema, list[str]]:
    """Return an extension that is pinned, or that a file describes, and the words by which a command names it."""
    known = Extensions(store)
    if known.is_extension(name) or not _is_file(name):
        if semantics is not None:
            raise BadInput("--semantics describes the file of --extension, and this is none", fix="leave it out")
        return known.effective(name, core), ["--extension", name]
    if semantics is None:
        raise BadInput(
            f"{printable(name)} does not say what it extends, and who sends its messages",
            fix="say so in a file and give it with --semantics; docs/extensions.md has an example",
        )
    file = sources.read(name)
    extension = read_extension(file, semantics, core, ledger=store.ledger, strict=store.strict)
    return extension, ["--extension", _argument(name, file)]


def _is_file(name: str) -> bool:
    """Return whether the name of an extension is that of a schema file."""
    return Path(name).is_file() or name.endswith(".json") or sources.is_source(name, ())


def _argument(given: str, file: sources.Source) -> str:
    """Return how a command in a file names a schema file."""
    return _near(Path(given)) if Path(given).is_file() else file.argument


def _near(path: Path) -> str:
    """Return a path as a command in a file may name it: from here, where it is below, as others have other folders."""
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_absolute() and path.is_relative_to(here) else str(path)
