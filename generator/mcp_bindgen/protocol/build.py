"""Build the protocol model of an effective schema."""

from __future__ import annotations

from functools import reduce

from mcp_bindgen.spec import EffectiveSchema
from mcp_bindgen.spec.errors import locating

from .model import Protocol
from .passes import PASSES, Draft


def build(source: EffectiveSchema) -> Protocol:
    """Run all passes over `source`.

    Raises:
        BadInput: In a strict reading: the schema breaks a convention of the model. The error names file and pointer.
    """
    with locating(source.file):
        first = Draft(source, source.definitions, source.reading.fork(), source.origins)
        draft = reduce(lambda so_far, step: step(so_far), PASSES, first)
    return Protocol(
        revision=source.revision,
        era=source.era,
        digest=source.digest,
        definitions=draft.definitions,
        methods=tuple(draft.methods.values()),
        errors=draft.errors,
        capabilities=draft.capabilities,
        facts=draft.facts,
        extensions=draft.extensions,
        origin=source.origin,
        corrections=source.corrections,
        decisions=draft.reading.decisions,
        reading=draft.reading,
    )
