"""The resources."""

from __future__ import annotations

import json
import re

from mcp_bindgen.runtime import ProtocolError
from mcp_bindgen.runtime.protocol.errors import INVALID_PARAMS

from .call import PIXEL, Object
from .skills import SKILLS

WATCHED = "test://watched-resource"

RESOURCES: dict[str, Object] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PIXEL},
    WATCHED: {"mimeType": "text/plain", "text": "Nothing was written yet."},
}
"""URI -> its contents."""

TEMPLATE = "test://template/{id}/data"


def list_resources() -> list[Object]:
    """Return the resources."""
    ours: list[Object] = [
        {"uri": uri, "name": uri.removeprefix("test://"), "mimeType": contents["mimeType"]}
        for uri, contents in RESOURCES.items()
    ]
    return ours + SKILLS.resources


def list_resource_templates() -> list[Object]:
    """Return the only template."""
    return [{"uriTemplate": TEMPLATE, "name": "template", "mimeType": "application/json"}]


def read_resource(uri: str) -> list[Object]:
    """Return the contents of a resource; raise `ProtocolError` where there is none."""
    if uri in RESOURCES:
        return [{"uri": uri, **RESOURCES[uri]}]
    if uri in SKILLS.files:
        return [SKILLS.files[uri].read]
    matched = re.fullmatch("test://template/([^/]+)/data", uri)
    if matched is None:
        raise ProtocolError(INVALID_PARAMS, "Resource not found", {"uri": uri})
    data = {"id": matched[1], "templateTest": True, "data": f"Data for ID: {matched[1]}"}
    return [{"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}]
