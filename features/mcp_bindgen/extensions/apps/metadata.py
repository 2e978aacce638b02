"""Say of tools and resources what the apps extension says in `_meta.ui`, and read it where servers and hosts decide."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel
from typing_extensions import TypedDict, Unpack

from mcp_bindgen.runtime.model.json_types import is_array, is_object

ID = "io.modelcontextprotocol/ui"
KEY = "ui"
SCHEME = "ui://"
MIME_TYPE = "text/html;profile=mcp-app"
"""The type of what a `ui://` resource gives: a whole HTML document."""

Visibility: TypeAlias = Literal["model", "app"]
Permission: TypeAlias = Literal["camera", "microphone", "geolocation", "clipboardWrite"]
T = TypeVar("T")

_ORIGIN = re.compile(r"(?:https?|wss?)://(?:\*\.)?[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*(?::[0-9]{1,5})?")
_FEATURES: Mapping[str, str] = {
    "camera": "camera",
    "microphone": "microphone",
    "geolocation": "geolocation",
    "clipboardWrite": "clipboard-write",
}
"""Permission -> the feature of the browser's Permissions Policy."""


def tool_meta(resource_uri: str | None, visibility: Sequence[Visibility] = ()) -> dict[str, Any]:
    """Return the `_meta` of a tool, in wire form.

    Args:
        resource_uri: The `ui://` resource that shows its results, if one does.
        visibility: Who may call it, the model or the app; by default both.

    Raises:
        ValueError: The URI has another scheme, or something else than the model or the app may call it.
    """
    if resource_uri is not None:
        check_uri(resource_uri)
    for one in {*visibility} - {*get_args(Visibility)}:
        raise ValueError(f"there is no visibility {one!r}: use {', '.join(get_args(Visibility))}")
    linked = {} if resource_uri is None else {"resourceUri": resource_uri}
    return {KEY: {**linked, **({"visibility": list(visibility)} if visibility else {})}}


class AppOptions(TypedDict, total=False):
    """What an app asks its host for; what it does not ask for, hosts do not allow.

    Attributes:
        connect_domains: The origins that it talks to, such as `https://api.example.com`.
        resource_domains: Those that its scripts, styles, pictures and fonts come from.
        frame_domains: Those of frames inside of it.
        base_uri_domains: Those that its relative links may begin at.
        permissions: What it would like the browser to let it do.
        domain: The origin that it would like to have; each host says what it takes.
        prefers_border: Whether the host should draw a border around it.
    """

    connect_domains: Sequence[str]
    resource_domains: Sequence[str]
    frame_domains: Sequence[str]
    base_uri_domains: Sequence[str]
    permissions: Sequence[Permission]
    domain: str
    prefers_border: bool


def resource_meta(**options: Unpack[AppOptions]) -> dict[str, Any]:
    """Return the `_meta` of a `ui://` resource, in wire form: what the app asks for, see `AppOptions`.

    Raises:
        ValueError: Something is no origin, or no permission that the extension knows.
    """
    domains: Mapping[str, Sequence[str]] = {
        "connectDomains": options.get("connect_domains", ()),
        "resourceDomains": options.get("resource_domains", ()),
        "frameDomains": options.get("frame_domains", ()),
        "baseUriDomains": options.get("base_uri_domains", ()),
    }
    csp = {name: [_origin(one) for one in given] for name, given in domains.items() if given}
    wanted: dict[str, dict[str, Any]] = {one: {} for one in options.get("permissions", ())}
    for one in wanted.keys() - _FEATURES.keys():
        raise ValueError(f"there is no permission {one!r}: use {', '.join(_FEATURES)}")
    said = {
        "csp": csp or None,
        "permissions": wanted or None,
        "domain": options.get("domain"),
        "prefersBorder": options.get("prefers_border"),
    }
    known = {name: value for name, value in said.items() if value is not None}
    return {KEY: known} if known else {}


def check_uri(uri: str) -> None:
    """Raise `ValueError` for a URI that cannot be that of an app."""
    if not uri.startswith(SCHEME) or uri == SCHEME:
        raise ValueError(f"{uri!r} is not the URI of an app: it begins with {SCHEME}")


def shows_apps(capabilities: Mapping[str, Any], mime_type: str = MIME_TYPE) -> bool:
    """Tell whether the capabilities of a client, in wire form, say that it shows apps."""
    settings = _inner(capabilities, "extensions", ID)
    types = settings.get("mimeTypes")
    return is_array(types) and mime_type in types


def visibility(tool: Mapping[str, Any]) -> Collection[str]:
    """Return who may call a tool, given its entry in wire form; an app only if it is of the same server."""
    said = _inner(tool, "_meta", KEY).get("visibility")
    return said if is_array(said) else ("model", "app")


def resource_uri(tool: Mapping[str, Any]) -> str | None:
    """Return the URI of the app that shows the results of a tool, given its entry in wire form."""
    said = _inner(tool, "_meta", KEY).get("resourceUri")
    return said if isinstance(said, str) else None


def tools_for(capabilities: Mapping[str, Any], tools: Sequence[T]) -> list[T]:
    """Return the tools that a client is told of: who shows no apps gets neither their metadata nor their own tools.

    Args:
        capabilities: Those of the client, in wire form: `ctx.peer_capabilities`.
        tools: The entries, typed or in wire form.
    """
    if shows_apps(capabilities):
        return list(tools)
    found = [(tool, _wire(cast("Any", tool))) for tool in tools]
    return [_without_ui(tool, wire) for tool, wire in found if "model" in visibility(wire)]


def contents_meta(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of the contents of a resource that its entry, in wire form, says for hosts that show it."""
    said = _inner(resource, "_meta", KEY)
    return {"_meta": {KEY: said}} if said else {}


def content_security_policy(meta: Mapping[str, Any] | BaseModel | None) -> str:
    """Return the policy under which a host shows an app: the restrictive default, and what the app declares.

    It is for the document that embeds the app in a frame with `srcdoc`, which inherits it, so that the app can also not
    lead its own frame elsewhere. What is no origin is left out: metadata comes from servers.

    Args:
        meta: The `ui` member of the `_meta` of the resource's contents, typed or in wire form.
    """
    csp = _inner(_wire(meta), "csp")
    connect, static, frames, bases = (
        [one for one in listed if isinstance(one, str) and _ORIGIN.fullmatch(one)]
        if is_array(listed := csp.get(name))
        else []
        for name in ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")
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
    """Return the `allow` attribute of an app's frame, if its host lets it do all that it would like to."""
    wanted = _inner(_wire(meta), "permissions")
    return "; ".join(feature for name, feature in _FEATURES.items() if name in wanted)


def _origin(given: str) -> str:
    if not _ORIGIN.fullmatch(given):
        near = urlsplit(given)
        hint = f"; did you mean {near.scheme}://{near.netloc}?" if near.scheme and near.netloc else ""
        raise ValueError(f"{given!r} is no origin such as https://api.example.com{hint}")
    return given


def _wire(meta: Mapping[str, Any] | BaseModel | None) -> Mapping[str, Any]:
    return meta.model_dump() if isinstance(meta, BaseModel) else meta or {}


def _inner(value: object, *path: str) -> Mapping[str, Any]:
    """Return the object at a path; an empty one where there is none."""
    for name in path:
        value = value.get(name) if is_object(value) else None
    return value if is_object(value) else {}


def _without_ui(tool: T, wire: Mapping[str, Any]) -> T:
    """Return a tool, which is given in wire form too, without what is for those who show apps."""
    meta = {name: value for name, value in _inner(wire, "_meta").items() if name != KEY}
    if meta == wire.get("_meta", {}):
        return tool
    kept: Any = {name: meta if name == "_meta" else value for name, value in wire.items() if name != "_meta" or meta}
    other: Any = type(tool).model_validate(kept) if isinstance(tool, BaseModel) else kept
    return cast("T", other)
