"""Prepare the facts of a revision for the template of `revision.py`."""

from __future__ import annotations

from .lowered import PythonProtocol

_JSON_RPC = range(-32768, -32599)  # codes that JSON-RPC itself defines (section 5.1)


def values(protocol: PythonProtocol) -> dict[str, object]:
    """Return the variables of the template."""
    known = {method.name for method in protocol.methods}
    return {
        "facts": protocol.facts,
        "era": "STATELESS" if protocol.era == "stateless" else "HANDSHAKE",
        "utilities": [(role, name) for role, name in protocol.facts.utilities if name in known],
        "meta_keys": sorted((protocol.meta_names[key], key) for key in protocol.facts.meta_keys),
        "errors": [protocol.constants[error.code] for error in protocol.errors if error.code not in _JSON_RPC],
    }
