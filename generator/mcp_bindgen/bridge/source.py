"""Protocols that a command line names: revisions, extensions, schema files and printed models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mcp_bindgen.protocol import Protocol, build
from mcp_bindgen.spec import BadInput, Store, named, sources
from mcp_bindgen.spec.sources import Readable, Source


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
    from .document import read  # its types take time to load

    return read(source).protocol


def source_of(name: Readable, store: Store) -> Source | None:
    """Return the file that a name stands for; None for the name of a revision or an extension."""
    is_file = not isinstance(name, str) or sources.is_source(name, store.pins)
    return sources.read(name) if is_file else None


def is_model(source: Source) -> bool:
    """Return True if a JSON file states that it is a model, of any version."""
    return re.match(rb'\s*\{\s*"format":\s*"mcp-bindgen-model/', source.content) is not None
