"""Build the protocol model of an effective schema."""

from __future__ import annotations

from functools import reduce

from mcp_bindgen.spec import EffectiveSchema
from mcp_bindgen.spec.effective import era
from mcp_bindgen.spec.errors import locating

from .model import Protocol
from .passes import PASSES, Draft
from .scopes import separate


def build(source: EffectiveSchema) -> Protocol:
    """Run all passes over `source`.

    Raises:
        BadInput: The schema breaks a convention that the protocol model reads, and is not read leniently; the error
            names file and pointer.
    """
    with locating(source.file):
        reading = source.reading.fork()
        first = Draft(source, source.definitions, reading, source.origins)
        draft = reduce(lambda so_far, step: step(so_far), PASSES, first)
        return separate(_protocol(draft), reading)


def _protocol(draft: Draft) -> Protocol:
    source = draft.source
    return Protocol(
        revision=source.revision,
        era=era(source.definitions),
        digest=source.digest,
        definitions=draft.definitions,
        methods=tuple(draft.methods.values()),
        errors=draft.errors,
        capabilities=draft.capabilities,
        facts=draft.facts,
        extensions=draft.extensions,
        origin=source.origin,
        corrections=source.corrections,
    )
