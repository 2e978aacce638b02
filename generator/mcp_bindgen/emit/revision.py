"""Prepare the facts of a revision for the template of `revision.py`."""

from __future__ import annotations

from mcp_bindgen.protocol import Protocol, naming

_JSON_RPC = range(-32768, -32599)  # codes that JSON-RPC itself defines (section 5.1)


def values(protocol: Protocol) -> dict[str, object]:
    """Return what the template shows."""
    known = {method.name for method in protocol.methods}
    return {
        "facts": protocol.facts,
        "era": "STATELESS" if protocol.era == "stateless" else "HANDSHAKE",
        "utilities": [(role, name) for role, name in protocol.facts.utilities if name in known],
        "errors": [naming.constant(error.name) for error in protocol.errors if error.code not in _JSON_RPC],
    }
