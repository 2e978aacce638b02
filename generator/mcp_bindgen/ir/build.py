"""Build the protocol model of an effective schema."""

from __future__ import annotations

from functools import reduce
from weakref import WeakKeyDictionary

from mcp_bindgen.spec import EffectiveSchema
from mcp_bindgen.spec.errors import locating

from .model import Protocol
from .passes import PASSES, BuildState

_BUILT: WeakKeyDictionary[EffectiveSchema, Protocol] = WeakKeyDictionary()


def build(source: EffectiveSchema) -> Protocol:
    """Return the protocol model of an effective schema, the same one for each call.

    Raises:
        BadInput: In strict mode: the schema breaks a convention of the model. The error names file and pointer.
    """
    if source not in _BUILT:
        _BUILT[source] = _run_passes(source)
    return _BUILT[source]


def _run_passes(source: EffectiveSchema) -> Protocol:
    with locating(source.file):
        first = BuildState(source, source.definitions, source.context.fork(), source.origins)
        state = reduce(lambda so_far, step: step(so_far), PASSES, first)
    return Protocol(
        revision=source.revision,
        era=source.era,
        digest=source.digest,
        definitions=state.definitions,
        methods=tuple(state.methods.values()),
        errors=state.errors,
        capabilities=state.capabilities,
        facts=state.facts,
        extensions=state.extensions,
        origin=source.origin,
        corrections=source.corrections,
        diagnostics=state.context.diagnostics,
        context=state.context,
    )
