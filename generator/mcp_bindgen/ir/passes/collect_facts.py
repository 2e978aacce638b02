"""Collect the facts that a connection needs beside methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from mcp_bindgen.spec.revisions import has_reached

from ..model import Facts, Object
from .build_state import BuildState


def collect_facts(state: BuildState) -> BuildState:
    """Fill in the facts: keys of `_meta` from the schema, the others from `semantics.toml`."""
    semantics, revision = state.semantics, state.source.revision
    utilities = [(role, name) for role, name in semantics["utilities"].items() if name in state.methods]
    cached = {name: tuple(_cached(state, methods)) for name, methods in semantics["cache_invalidations"].items()}
    facts = Facts(
        utilities=tuple(utilities),
        meta_keys=tuple(sorted(_meta_keys(state))),
        cache_invalidations=tuple(
            (name, methods) for name, methods in cached.items() if methods and name in state.methods
        ),
        batches=any(name in state.definitions for name in semantics["batches"].values()),
        unnamed_over_http=revision == semantics["transports"].get("unnamed-revision"),
        trace_context=tuple(semantics["trace_context"]),
        stream_polling=_since(revision, semantics["transports"].get("stream-polling")),
        argument_errors_in_results=_since(revision, semantics["behaviour"].get("argument-errors-in-results")),
        draft=state.source.draft,
        missing=tuple(_missing(state)),
    )
    return replace(state, facts=facts)


def _missing(state: BuildState) -> Iterator[str]:
    """Yield the definitions without which no connection can begin."""
    handshake: Mapping[str, str] = state.semantics["handshake"].get(state.source.era, {})
    yield from (definition for method, definition in handshake.items() if method not in state.methods)
    introductions = [name for names in state.semantics["introductions"].values() for name in names]
    yield from (name for name in introductions if name not in state.definitions)


def _since(revision: str, first: str | None) -> bool:
    """Return True if `revision` is not before `first`."""
    return first is not None and has_reached(revision, first)


def _cached(state: BuildState, methods: list[str]) -> list[str]:
    """Return the methods with cacheable results, of the given ones."""
    known = [state.methods[name] for name in methods if name in state.methods]
    return [method.name for method in known if state.field_of(method.result, "ttlMs")]


def _meta_keys(state: BuildState) -> set[str]:
    """Return the members of the core with the prefix of a vendor."""
    objects = [definition.type for definition in state.of_core().values() if isinstance(definition.type, Object)]
    return {field.wire for type in objects for field in type.fields if "/" in field.wire}
