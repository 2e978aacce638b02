"""Protocol atlas: pages on each revision, method and definition, generated from the protocol model."""

from __future__ import annotations

from mcp_bindgen.protocol import build
from mcp_bindgen.spec import Store, named

from ..markdown import Pages, code, page, table


def atlas() -> Pages:
    """Return the pages of the atlas."""
    store = Store()
    protocols = [build(named(revision, store)) for revision in store.pins]
    names = sorted({method.name for protocol in protocols for method in protocol.methods})
    rows = [
        (code(name), *("yes" if any(one.name == name for one in protocol.methods) else "" for protocol in protocols))
        for name in names
    ]
    return {
        "atlas/index.md": page(
            "Protocol atlas",
            "The methods of the Model Context Protocol in each revision, read from the schemas.",
            table(["method", *(protocol.revision for protocol in protocols)], rows),
        )
    }
