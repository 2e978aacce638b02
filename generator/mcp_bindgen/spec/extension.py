"""Read the schema of an extension, and add it to a core revision."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import canonical, document, patches, sources
from .check import check_depth
from .copies import Copy, differing, folded
from .diagnostics import DiagnosticContext
from .effective import EffectiveSchema, ExtensionSchema
from .errors import BadInput, locating
from .json import is_object, join
from .keywords import DIALECT, Schema, walk
from .patches import Patch
from .references import target
from .semantics import read_extension_facts
from .sources import Readable

_LABEL = "[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_ID = re.compile(rf"(?P<prefix>{_LABEL}(?:\.{_LABEL})*)/(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")
_MODULE = re.compile("[a-z][a-z0-9_]*")


def is_id(name: str) -> bool:
    """Return whether `name` has the form of an extension's identifier."""
    return _ID.fullmatch(name) is not None and ".." not in name


def check_id(name: str) -> str:
    """Return the id of an extension, a prefix and a name as in `_meta` keys; raise `BadInput` if it is not valid."""
    if not is_id(name):
        raise BadInput(
            f"{name!r} is not the id of an extension", fix="write a domain that is yours and a name: com.example/jobs"
        )
    return name


def module_of(facts: Mapping[str, Any]) -> str:
    """Return the name of the package of an extension: `module` in `[extension]`, else derived from its id."""
    head: Mapping[str, str] = facts["extension"]
    stem = re.sub(r"\W+", "_", head["id"].rpartition("/")[2]).lower()
    module = head.get("module", stem if stem[:1].isalpha() else f"extension_{stem}")
    if not _MODULE.fullmatch(module) or keyword.iskeyword(module):
        raise BadInput(
            f"{module!r} cannot be a module", pointer="/extension/module", fix="use small letters, digits and _"
        )
    return module


def own_structure(
    raw: Any,
    core: EffectiveSchema,
    context: DiagnosticContext,
    errata: Sequence[Patch] = (),
    corrections: Sequence[Patch] = (),
    version: str | None = None,
    *,
    stored: bool = False,
) -> tuple[dict[str, Schema], tuple[Copy, ...]]:
    """Return the own definitions of the schema of an extension.

    Copies of core definitions are removed; inline copies become references.

    Args:
        raw: The JSON document; it may refer to core definitions without copies of them.
        core: The extended revision.
        context: Reports broken rules.
        errata: Known errors of core, also in copies.
        corrections: Known errors of the extension.
        version: Version of the extension with these errors.
        stored: True for a document without inline copies, as the store keeps it.

    Returns:
        The definitions, with prose, and the copies that differ from core.

    Raises:
        BadInput: The document is not a schema. In strict mode also: it breaks a rule.
    """
    check_depth(raw)
    if not is_object(raw) or "$defs" not in raw:
        raw = document.normalise(raw, context)
    elif not is_object(raw["$defs"]):
        raise BadInput("'$defs' is not an object", pointer="/$defs", fix="give a JSON Schema file")
    given: dict[str, Any] = raw["$defs"]
    missing = {name: schema for name, schema in core.definitions.items() if name not in given}
    whole = document.normalise(raw, context, missing)
    whole, _ = patches.apply(whole, errata)
    whole, _ = patches.apply(whole, corrections, version)
    context.document = raw
    definitions: dict[str, Schema] = whole["$defs"]
    copies = differing({name: definitions[name] for name in given if name in core.definitions}, core.definitions)
    own = {name: schema for name, schema in definitions.items() if name not in core.definitions}
    return own if stored else folded(own, core.definitions), copies


def read_extension(
    file: Readable,
    facts: Path,
    core: EffectiveSchema,
    *,
    version: str | None = None,
    errata: Sequence[Patch] = (),
    corrections: Sequence[Patch] = (),
    docs: Mapping[str, Any] | None = None,
    draft: bool = True,
    strict: bool = False,
    stored: bool = False,
) -> ExtensionSchema:
    """Read an extension from a schema file and the facts about it.

    Args:
        file: The schema, with or without copies of core definitions.
        facts: Path of its `semantics.toml`.
        core: The extended revision.
        version: Its version; by default the version in the facts, else the name of the source.
        errata: Known errors of core, also in copies.
        corrections: Known errors of the extension.
        docs: Our documentation; by default the prose of the schema.
        draft: True if it is not released.
        strict: True to refuse broken rules; by default the protocol model lists how they were handled.
        stored: True for a schema from the store, where references replace inline copies.

    Raises:
        BadInput: A file is not usable, or the extension does not extend this core revision.
    """
    source = sources.read(file)
    semantics = read_extension_facts(facts)
    head: Mapping[str, Any] = semantics["extension"]
    with locating(facts):
        check_id(head["id"])
        module = module_of(semantics)
        if core.revision not in head["core"] and not core.draft:
            raise BadInput(
                f"{head['id']} extends {', '.join(head['core'])} and not {core.revision}",
                pointer="/extension/core",
                fix=f"add {core.revision!r} there if it does",
            )
    context = DiagnosticContext(source.label, strict=strict)
    raw, _ = document.load(source)
    found = version or head.get("version") or source.revision
    with locating(source.label):
        own, copies = own_structure(raw, core, context, errata, corrections, found, stored=stored)
        own = _chosen(own, head.get("only"), facts)
    return ExtensionSchema(
        id=head["id"],
        version=found,
        module=module,
        definitions=own,
        digest=canonical.digest({"$schema": DIALECT, "$defs": own}),
        semantics=semantics,
        stated_in=facts,
        docs=docs,
        file=source.label if not isinstance(file, Path) else file,
        copies=copies,
        draft=draft,
        context=context,
    )


def _chosen(own: Mapping[str, Schema], only: Sequence[str] | None, facts: Path) -> dict[str, Schema]:
    """Return the definitions in `only` and their references; all definitions without `only`."""
    pending = list(own if only is None else only)
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if only is not None and name in only and name not in own:
            raise BadInput(f"there is no definition {name!r}", file=facts, pointer="/extension/only", fix="remove it")
        if name in own and name not in found:
            found.add(name)
            pending += [target(node["$ref"]) for node in walk(own[name]) if "$ref" in node]
    return {name: schema for name, schema in own.items() if name in found}


def extend(core: EffectiveSchema, *extensions: ExtensionSchema) -> EffectiveSchema:
    """Add the definitions of extensions to a core revision; core definitions do not change.

    Raises:
        BadInput: Two extensions have the same id, module or definition.
    """
    definitions = dict(core.definitions)
    seen: dict[tuple[str, str], ExtensionSchema] = {}
    contexts: dict[str, DiagnosticContext] = {}
    for extension in (*core.extensions, *extensions):
        for what, name in (("id", extension.id), ("module", extension.module)):
            if (other := seen.setdefault((what, name), extension)) is not extension:
                raise BadInput(
                    f"{other.label} and {extension.label} have the same {what} {name!r}",
                    file=extension.file,
                    fix="leave one of them out",
                )
        for name, schema in extension.definitions.items():
            if name in contexts:
                raise BadInput(
                    f"another extension has a definition {name!r} too",
                    file=extension.file,
                    pointer=join("/$defs", name),
                    fix="read them one at a time",
                )
            definitions[name] = schema
            contexts[name] = extension.context
    return replace(
        core,
        definitions=definitions,
        extensions=(*core.extensions, *extensions),
        context=core.context.joined(contexts),
    )
