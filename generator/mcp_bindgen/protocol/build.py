"""Build the protocol model of an effective schema."""

from __future__ import annotations

from functools import reduce

from mcp_bindgen.spec import EffectiveSchema
from mcp_bindgen.spec.errors import locating
from mcp_bindgen.spec.store import era

from .model import Protocol
from .passes import PASSES, Draft


def build(source: EffectiveSchema) -> Protocol:
    """Run all passes over `source`.

    Raises:
        BadInput: The schema breaks a convention that the protocol model reads; the error names file and pointer.
    """
    with locating(source.file):
        draft = reduce(lambda so_far, step: step(so_far), PASSES, Draft(source, source.definitions))
    return Protocol(
        revision=source.revision,
        era=era(source.definitions),
        digest=source.digest,
        definitions=draft.definitions,
        methods=tuple(draft.methods.values()),
        errors=draft.errors,
        capabilities=draft.capabilities,
        facts=draft.facts,
        origin=source.origin,
        corrections=source.corrections,
    )
