"""MCP Apps (extension `io.modelcontextprotocol/ui`): metadata of tools and resources, for servers and hosts.

A server links tools to `ui://` resources. A host shows their HTML in a sandboxed frame. The list of tools for a client
depends on the capabilities of the client. Hosts get the policies that frames need.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel
from pydantic.alias_generators import to_camel, to_snake
from typing_extensions import TypedDict, Unpack

from mcp_bindgen.runtime.model.json_types import is_array, is_object

ID = "io.modelcontextprotocol/ui"
KEY = "ui"
SCHEME = "ui://"
MIME_TYPE = "text/html;profile=mcp-app"
"""The MIME type of a `ui://` resource: a whole HTML document."""

Visibility: TypeAlias = Literal["model", "app"]
Permission: TypeAlias = Literal["camera", "microphone", "geolocation", "clipboardWrite"]
T = TypeVar("T")

_ORIGIN = re.compile(r"(?:https?|wss?)://(?:\*\.)?[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*(?::[0-9]{1,5})?")
_FEATURES: Mapping[str, str] = {one: to_snake(one).replace("_", "-") for one in get_args(Permission)}
"""Permission -> the feature of the browser's Permissions Policy."""

_OPTIONS = ("connect_domains", "resource_domains", "frame_domains", "base_uri_domains")
_DOMAINS: Mapping[str, str] = {to_camel(option): option for option in _OPTIONS}
"""Member of the metadata -> option: see `AppOptions`."""


def tool_meta(resource_uri: str | None, visibility: Sequence[Visibility] = ()) -> dict[str, Any]:
    """Return the `_meta` of a tool, in wire form.

    Args:
        resource_uri: The `ui://` resource that shows its results; `None` if there is none.
        visibility: Its callers, the model or the app; by default both.

    Raises:
        ValueError: The URI has another scheme, or a caller is neither the model nor the app.
    """
    if resource_uri is not None:
        check_uri(resource_uri)
    for one in {*visibility} - {*get_args(Visibility)}:
        raise ValueError(f"there is no visibility {one!r}: use {', '.join(get_args(Visibility))}")
    return {KEY: _known({"resourceUri": resource_uri, "visibility": list(visibility) or None})}


class AppOptions(TypedDict, total=False):
    """Requests of an app to its host, which allows nothing else.

    Attributes:
        connect_domains: The origins that it connects to, such as `https://api.example.com`.
        resource_domains: The origins of its scripts, styles, pictures and fonts.
        frame_domains: The origins of frames inside of it.
        base_uri_domains: The origins of its base URI.
        permissions: The features of the browser that it requests.
        domain: The origin that it requests; each host documents its own form.
        prefers_border: True if the host should draw a border around it.
    """

    connect_domains: Sequence[str]
    resource_domains: Sequence[str]
    frame_domains: Sequence[str]
    base_uri_domains: Sequence[str]
    permissions: Sequence[Permission]
    domain: str
    prefers_border: bool


def resource_meta(**options: Unpack[AppOptions]) -> dict[str, Any]:
    """Return the `_meta` of a `ui://` resource, in wire form, for the requests in `AppOptions`.

    Raises:
        ValueError: An origin or a permission is invalid.
    """
    given: Mapping[str, Any] = {**options}
    csp = {name: [_origin(one) for one in given[option]] for name, option in _DOMAINS.items() if given.get(option)}
    permissions: dict[str, dict[str, Any]] = {one: {} for one in options.get("permissions", ())}
    for one in permissions.keys() - _FEATURES.keys():
        raise ValueError(f"there is no permission {one!r}: use {', '.join(_FEATURES)}")
    domain, border = options.get("domain"), options.get("prefers_border")
    known = _known({"csp": csp or None, "permissions": permissions or None, "domain": domain, "prefersBorder": border})
    return {KEY: known} if known else {}


def check_uri(uri: str) -> None:
    """Raise `ValueError` for a URI that no app can have."""
    if not uri.startswith(SCHEME) or uri == SCHEME:
        raise ValueError(f"{uri!r} is not the URI of an app: it begins with {SCHEME}")


def shows_apps(capabilities: Mapping[str, Any], mime_type: str = MIME_TYPE) -> bool:
    """Return True if the capabilities of a client, in wire form, declare that it shows apps."""
    types = _inner(capabilities, "extensions", ID).get("mimeTypes")
    return is_array(types) and mime_type in types


def visibility(tool: Mapping[str, Any]) -> Collection[str]:
    """Return the callers of a tool, given its entry in wire form; `app` means an app of the same server."""
    stated = _inner(tool, "_meta", KEY).get("visibility")
    return stated if is_array(stated) else ("model", "app")


def resource_uri(tool: Mapping[str, Any]) -> str | None:
    """Return the URI of the app that shows the results of a tool, given its entry in wire form."""
    stated = _inner(tool, "_meta", KEY).get("resourceUri")
    return stated if isinstance(stated, str) else None


def tools_for(capabilities: Mapping[str, Any], tools: Sequence[T]) -> list[T]:
    """Return the tools for a client; one that shows no apps gets neither their metadata nor tools for apps alone.

    Args:
        capabilities: The capabilities of the client, in wire form: `ctx.peer_capabilities`.
        tools: The entries, typed or in wire form.
    """
    if shows_apps(capabilities):
        return list(tools)
    found = [(tool, _wire(cast("Any", tool))) for tool in tools]
    return [_without_ui(tool, wire) for tool, wire in found if "model" in visibility(wire)]


def contents_meta(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of an app as members of the resource's contents, given its entry in wire form."""
    return {"_meta": {KEY: stated}} if (stated := _inner(resource, "_meta", KEY)) else {}


def content_security_policy(meta: Mapping[str, Any] | BaseModel | None) -> str:
    """Return the Content Security Policy for an app: the restrictive default, and the origins that the app declares.

    It is for the document that embeds the app in a frame with `srcdoc`. The frame inherits it, so the app cannot
    navigate its own frame away either. Invalid origins are left out, because metadata comes from servers.

    Args:
        meta: The `ui` member of the `_meta` of the resource's contents, typed or in wire form.
    """
    csp = _inner(_wire(meta), "csp")
    stated = (listed if is_array(listed := csp.get(name)) else [] for name in _DOMAINS)
    connect, static, frames, bases = (
        [one for one in listed if isinstance(one, str) and _ORIGIN.fullmatch(one)] for listed in stated
    )
    directives: Mapping[str, Sequence[str]] = {
        "default-src": ["'none'"],
        "script-src": ["'self'", "'unsafe-inline'", *static],
        "style-src": ["'self'", "'unsafe-inline'", *static],
        "img-src": ["'self'", "data:", *static],
        "media-src": ["'self'", "data:", *static],
        "font-src": ["'self'", *static],
        "connect-src": connect or ["'none'"],
        "frame-src": frames or ["'none'"],
        "base-uri": bases or ["'self'"],
        "object-src": ["'none'"],
        "form-action": ["'none'"],
    }
    return "; ".join(" ".join([name, *values]) for name, values in directives.items())


def permissions_policy(meta: Mapping[str, Any] | BaseModel | None) -> str:
    """Return the `allow` attribute of an app's frame for a host that grants all requested permissions."""
    requested = _inner(_wire(meta), "permissions")
    return "; ".join(feature for name, feature in _FEATURES.items() if name in requested)


def _origin(given: str) -> str:
    if not _ORIGIN.fullmatch(given):
        near = urlsplit(given)
        hint = f"; did you mean {near.scheme}://{near.netloc}?" if near.scheme and near.netloc else ""
        raise ValueError(f"{given!r} is no origin such as https://api.example.com{hint}")
    return given


def _known(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _wire(meta: Mapping[str, Any] | BaseModel | None) -> Mapping[str, Any]:
    return meta.model_dump() if isinstance(meta, BaseModel) else meta or {}


def _inner(value: object, *path: str) -> Mapping[str, Any]:
    """Return the object at a path, or an empty one."""
    for name in path:
        value = value.get(name) if is_object(value) else None
    return value if is_object(value) else {}


def _without_ui(tool: T, wire: Mapping[str, Any]) -> T:
    """Return a tool, given also in wire form, without the metadata of apps."""
    meta = {name: value for name, value in _inner(wire, "_meta").items() if name != KEY}
    if meta == wire.get("_meta", {}):
        return tool
    kept: Any = {name: meta if name == "_meta" else value for name, value in wire.items() if name != "_meta" or meta}
    other: Any = type(tool).model_validate(kept) if isinstance(tool, BaseModel) else kept
    return cast("T", other)
