"""Protocols and models that a command line names: revisions, extensions, schema files and printed models.

The types of models and conversions are imported where they are used, because they take time to load.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcp_bindgen.ir import Protocol, build
from mcp_bindgen.spec import BadInput, Store, named, sources
from mcp_bindgen.spec.sources import Readable, Source

if TYPE_CHECKING:
    from .differences import Plan
    from .document import Model


def protocol_of(
    name: Readable, store: Store, semantics: Mapping[str, Any] | None = None, extensions: tuple[str, ...] = ()
) -> Protocol:
    """Return the protocol of a revision, an extension, a schema file or a printed model.

    Raises:
        BadInput: The name is none of these, or the file cannot be read.
    """
    source = source_of(name, store)
    if source is None or not is_model(source):
        return build(named(source or str(name), store, semantics, extensions))
    if extensions:
        raise BadInput("a printed model has its extensions already", fix="leave out --extension")
    from .document import read

    return read(source).protocol


def source_of(name: Readable, store: Store) -> Source | None:
    """Return the file that a name stands for; None for the name of a revision or an extension."""
    is_file = not isinstance(name, str) or sources.is_source(name, store.pins)
    return sources.read(name) if is_file else None


def is_model(source: Source) -> bool:
    """Return True if a JSON file states that it is a model, of any version."""
    return re.match(rb'\s*\{\s*"format":\s*"mcp-bindgen-model/', source.content) is not None


def model_of(name: str, store: Store, extensions: tuple[str, ...] = ()) -> Model:
    """Return the model of a revision, an extension, a schema file or a printed model.

    Only revisions of `store` have conversions.

    Raises:
        BadInput: As `protocol_of`, and if the file of rules is wrong.
    """
    from .document import Model, read
    from .steps import plans

    source = source_of(name, store)
    if source is not None and is_model(source) and not extensions:
        return read(source)
    protocol = protocol_of(source or name, store, extensions=extensions)
    revision = protocol.revision
    if source is not None or revision not in store.pins:
        return Model(protocol)
    users = revision if store.is_users(revision) else False
    return Model(protocol, tuple(plans(store, users=users, leaving=revision)))


def models(store: Store, *, users: bool | str = False) -> list[Model]:
    """Return the models of revisions that have adjacent ones, with their conversions.

    Args:
        store: The revisions.
        users: As in `steps.pairs`.

    Raises:
        BadInput: A schema breaks a convention, or the file of rules is wrong.
    """
    from .document import Model
    from .steps import plans

    found: dict[str, list[Plan]] = {}
    for plan in plans(store, users=users):
        found.setdefault(plan.source.revision, []).append(plan)
    return [Model(build(store.effective(revision)), tuple(leaving)) for revision, leaving in found.items()]
