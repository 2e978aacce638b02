"""Decide which packages a command line or a project configuration asks for."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path

from mcp_bindgen.conversion.document import read
from mcp_bindgen.conversion.source import is_model
from mcp_bindgen.ir import Protocol
from mcp_bindgen.spec import EffectiveSchema, ExtensionSchema, Store, extend, external, read_extension, sources
from mcp_bindgen.spec.errors import BadInput, near, printable, suggestion
from mcp_bindgen.spec.json import join
from mcp_bindgen.spec.semantics import merge_semantics, read_semantics
from mcp_bindgen.spec.sources import Readable

from .emitter import Bindings, Emitter, Options, Settings, Target
from .registry import DEFAULT, emitter

OWN_PLACE = "give --out DIR and --package NAME"


@dataclass(frozen=True)
class Request:
    """Packages that a command line or one entry of a project configuration asks for.

    Attributes:
        revisions: The revisions to generate. Without any and without `schema`, all packages of this installation.
        out: Folder above the package; None for packages of this installation.
        package: Name of the package.
        schema: Source of a schema file to generate from, instead of a known revision.
        name: Name of the revision in `schema`.
        semantics: File in the form of `semantics.toml`: more facts for `schema`, or the facts of the extension.
        only: Capabilities, and parts of the emitter, to restrict the package to; empty means everything.
        folder: Another `schema/` folder.
        strict: True to refuse a schema file that breaks a rule.
        extensions: Extensions of the revisions to generate instead of them: names, or sources of schema files.
        language: Name of the emitter.
        templates: Folder with templates that replace templates of the emitter.
        base: Folder to which paths are relative.
        settings: Settings of the emitter, from a project configuration.
        place: JSON Pointer to the settings in the configuration.
    """

    revisions: tuple[str, ...] = ()
    out: Path | None = None
    package: str | None = None
    schema: Readable | None = None
    name: str | None = None
    semantics: Path | None = None
    only: tuple[str, ...] = ()
    folder: Path | None = None
    strict: bool = False
    extensions: tuple[str, ...] = ()
    language: str = DEFAULT
    templates: Path | None = None
    base: Path = field(default_factory=Path)
    settings: Settings = field(default_factory=Settings)
    place: str = ""


def targets(request: Request) -> list[Target]:
    """Return the packages that are asked for.

    Raises:
        BadInput: The options do not fit together, or a revision, extension or emitter is unknown.
    """
    writer = emitter(request.language)
    store = Store(request.folder, strict=request.strict)
    if request.out is not None and request.package is None:
        revisions = filter(None, [request.name]) if request.schema else request.revisions or store.pins
        names = {revision: writer.default_package(revision, _short(request.extensions)) for revision in revisions}
        if names and all(names.values()):
            requests = (
                replace(request, revisions=() if request.schema else (revision,), package=name)
                for revision, name in names.items()
            )
            return [target for one in requests for target in targets(one)]
    _check(request)
    base, out, package, templates = request.base, request.out, request.package, request.templates
    if out is None or package is None:
        return writer.installed(store, request.revisions, request.extensions)
    writer.check_package(package)
    if templates is not None:
        _check_templates(base / templates, writer)
    source, extension, words, model = _source(request, store)
    options = {
        "--folder": request.folder and near(request.folder),
        "--semantics": request.semantics and near(request.semantics),
        "--out": near(out),
        "--package": package,
        "--only": ",".join(request.only),
        "--language": request.language if request.language != DEFAULT else "",
        "--templates": templates and near(templates),
    }
    texts = {option: value.as_posix() if isinstance(value, Path) else value for option, value in options.items()}
    words += [word for option, text in texts.items() if text for word in (option, text)]
    command = shlex.join(["mcp-bindgen", "generate", *([] if request.settings.model_fields_set else words)])
    if sources.STDIN in (request.schema, *request.extensions):
        command += "  # with the schema file as standard input"
    core = writer.core_of(source.revision) if extension is not None else ""
    given = Options(
        package,
        command,
        extension.id if extension is not None else "",
        core,
        templates and base / templates,
        settings=request.settings,
        parts=tuple(name for name in request.only if name in writer.parts),
    )
    writer.check_options(given)
    capabilities = tuple(name for name in request.only if name not in writer.parts)
    folder = writer.folder_of(base / out, package)
    target = Bindings(writer, folder, given, source, capabilities, extension, model, base=base)
    _check_names(target, join(request.place, "names"))
    return [target]


def is_schema_file(name: str) -> bool:
    """Return True if the name of an extension is the source of a schema file."""
    return Path(name).is_file() or name.endswith(".json") or sources.is_source(name, ())


def _short(extensions: tuple[str, ...]) -> str:
    """Return the name of an extension in the name of a package: `tasks` for `tasks@2026-07-28` or `tasks.json`."""
    return Path(extensions[0].partition("@")[0]).stem if extensions else ""


def _check(request: Request) -> None:
    """Raise `BadInput` if options do not fit together."""
    schema, name, extensions, is_own = request.schema, request.name, request.extensions, request.out is not None
    own = {
        "--schema": schema,
        "--folder": request.folder,
        "--only": request.only or None,
        "--semantics": request.semantics,
        "--templates": request.templates,
    }
    for option in ("--schema", "--only") if extensions else ():
        if own[option] is not None:
            raise BadInput(f"{option} does not go with --extension", fix=f"leave out {option}")
    if schema is not None and request.revisions:
        raise BadInput("--schema takes the place of a revision", fix="name it with --revision NAME")
    if schema is None and (name is not None or (request.semantics is not None and not extensions)):
        raise BadInput(
            "--revision and --semantics describe the file of --schema, or --semantics the file of --extension",
            fix="give --schema FILE or --extension FILE",
        )
    has_one = schema is not None or len(request.revisions) == 1
    if (is_own or request.package is not None) and not (is_own and request.package and has_one and len(extensions) < 2):
        number = "one extension of one revision" if extensions else "one revision"
        raise BadInput(f"bindings of your own need --out DIR, --package NAME and {number}", fix="give all three")
    for option, value in own.items():
        if value is not None and not is_own:
            raise BadInput(f"{option} is for bindings of your own", fix=OWN_PLACE)
    if name is not None and not re.fullmatch(r"[\w.+-]+", name):
        raise BadInput(f"{name!r} is not the name of a revision", fix="use letters, digits and . _ + -")


_Sources = tuple[EffectiveSchema, ExtensionSchema | None, list[str], Protocol | None]


def _source(request: Request, store: Store) -> _Sources:
    """Return schema and extension of a package, the words by which a command names them, and the printed model."""
    base = request.base
    facts = base / request.semantics if request.semantics is not None else None
    if request.schema is not None:
        return _file(request, request.schema, store, facts)
    core = store.effective(request.revisions[0])
    if not request.extensions:
        return core, None, [core.revision], None
    given = request.extensions[0]
    if store.is_extension(given) or not is_schema_file(str(base / given) if (base / given).is_file() else given):
        if facts is not None:
            raise BadInput("--semantics describes the file of --extension, and this is none", fix="leave it out")
        extension = store.extension_schema(given, core)
        return extend(core, extension), extension, [core.revision, "--extension", given], None
    if facts is None:
        raise BadInput(
            f"{printable(given)} does not state the revision that it extends and the senders of its messages",
            fix="state them in a file and give it with --semantics; docs/how-to/extensions.md has an example",
        )
    file, argument = _read(base, given)
    extension = read_extension(file, facts, core, errata=store.errata, strict=store.strict)
    return extend(core, extension), extension, [core.revision, "--extension", argument], None


def _file(request: Request, given: Readable, store: Store, facts: Path | None) -> _Sources:
    """Return the source of a package from a schema file or a printed model."""
    file, argument = _read(request.base, given)
    words = ["--schema", argument]
    if is_model(file):
        model = read(file).protocol
        if request.name not in (None, model.revision) or facts is not None:
            raise BadInput(
                f"the printed model is of {model.revision}, and complete", fix="leave out --revision and --semantics"
            )
        return EffectiveSchema(model.revision, {}, model.digest, file=file.label), None, words, model
    if request.name is None:
        raise BadInput("--schema takes the place of a revision", fix="name it with --revision NAME")
    known = merge_semantics(store.semantics, read_semantics(facts)) if facts else store.semantics
    source = external(file, request.name, known, store.errata, strict=store.strict)
    return source, None, [*words, "--revision", request.name], None


def _read(base: Path, given: Readable) -> tuple[sources.Source, str]:
    """Return a schema file, and how a command in a generated file names it."""
    if not isinstance(given, sources.Source) and (base / given).is_file():
        return sources.read(base / given), near(Path(given)).as_posix()
    file = sources.read(given)
    return file, file.argument


def _check_names(target: Bindings, pointer: str) -> None:
    """Raise `BadInput` if the settings give a definition a name that it cannot have, or that another one has."""
    names = target.options.settings.names
    if not names:
        return
    definitions = target.whole.definitions
    known = {old: new for old, new in names.items() if old in definitions}
    taken = [*(definitions.keys() - known)]
    for old, new in known.items():
        reason = target.emitter.objection(new, definitions[old], target.options)
        reason = reason or (f"another definition is {new!r}" if new in taken else "")
        if reason:
            raise BadInput(reason, pointer=join(pointer, old), fix="choose another name, or leave it out")
        taken.append(new)


def _check_templates(folder: Path, writer: Emitter) -> None:
    """Raise `BadInput` if the folder holds a file that is no template of the emitter, or no text."""
    if not folder.is_dir():
        raise BadInput("is not a folder", file=folder, fix="name a folder of templates with --templates DIR")
    for path in sorted(path for path in folder.rglob("*") if not path.is_dir()):
        found = path.relative_to(folder).as_posix()
        if found not in writer.templates:
            known = suggestion(found, writer.templates) if writer.templates else "this emitter has no templates"
            raise BadInput(f"{found!r} is not the name of a template", file=folder, fix=known)
        try:
            path.read_text("utf-8")
        except UnicodeDecodeError as error:
            raise BadInput(f"is not UTF-8 (byte {error.start})", file=path, fix="save it as UTF-8") from None
        except OSError as error:
            raise BadInput(f"cannot be read ({error.strerror})", file=path) from None
