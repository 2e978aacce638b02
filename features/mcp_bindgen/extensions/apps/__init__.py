"""Offer and show MCP Apps, as the extension `io.modelcontextprotocol/ui` says.

A server links tools to `ui://` resources, whose HTML a host shows in a sandboxed frame. Which tools a client is told of
follows from what it declares; hosts get the policies that frames need.
"""

from typing import TYPE_CHECKING

from mcp_bindgen.runtime.lazy import lazy_modules

if TYPE_CHECKING:
    from .metadata import MIME_TYPE as MIME_TYPE, AppOptions as AppOptions
    from .metadata import Permission as Permission, Visibility as Visibility
    from .metadata import content_security_policy as content_security_policy, permissions_policy as permissions_policy
    from .metadata import resource_meta as resource_meta, resource_uri as resource_uri, shows_apps as shows_apps
    from .metadata import tool_meta as tool_meta, tools_for as tools_for, visibility as visibility

_MODULES = {
    "metadata": [
        "MIME_TYPE",
        "AppOptions",
        "Permission",
        "Visibility",
        "content_security_policy",
        "permissions_policy",
        "resource_meta",
        "resource_uri",
        "shows_apps",
        "tool_meta",
        "tools_for",
        "visibility",
    ]
}

__getattr__ = lazy_modules(__name__, _MODULES)
