"""Capabilities: derive them from handlers, and check messages against them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, reduce
from types import MappingProxyType
from typing import Any, ClassVar

from ..model.json_types import is_object
from .extension import Extension, added_to
from .methods import OTHER_ROLE, Method, Path, Role
from .revision import Dispatcher, Revision
from .routing import check_names


class Side:
    """Base of generated servers and clients.

    Attributes:
        dispatcher: Generated routes to its handlers.
        revision: The revision that it speaks.
        extensions: Extensions among its bases; it declares them to every peer of its revision.
        extension_settings: Id of an extension -> its settings, typed or in wire form.
        info: Its introduction, an `Implementation`; `None` for that of the runtime.
        announces: Notifications about changes that it may send, by their methods, and so declares; `None` for all
            that concern its features.
    """

    dispatcher: ClassVar[Dispatcher]
    revision: ClassVar[str]
    extensions: ClassVar[tuple[Extension, ...]] = ()
    extension_settings: Mapping[str, Any] = {}
    info: Any = None
    announces: Collection[str] | None = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "dispatcher" in cls.__dict__:
            cls.revision = cls.dispatcher.revision.name
        elif hasattr(cls, "dispatcher"):
            cls.extensions = _checked_extensions(cls, cls.dispatcher)

    def extra_capabilities(self) -> Mapping[str, Any]:
        """Return capabilities to declare beside those of the handlers, in wire form.

        A capability with modes replaces that of its handler: `{"elicitation": {"form": {}}}` declares no other mode.
        """
        return {}


def _checked_extensions(kind: type, dispatcher: Dispatcher) -> tuple[Extension, ...]:
    """Return the extensions of a class; check them and the names of its handlers.

    Raises:
        TypeError: Two extensions collide, settings belong to none, or the name of a handler is misspelt.
    """
    if added_to(kind):
        dispatcher = dispatcher.extended(kind)
    own: Mapping[str, Any] = kind.__dict__
    if "adds" not in own:
        check_names(kind, dispatcher.revision.name, dispatcher.handlers)
    settings: Any = own.get("extension_settings")
    unknown = sorted(set(settings) - {one.id for one in dispatcher.extensions}) if is_object(settings) else []
    if unknown:
        raise TypeError(f"{kind.__name__}.extension_settings: {unknown[0]!r} is no extension of its bases")
    return dispatcher.extensions


def declared(target: Side, dispatcher: Dispatcher, extensions: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the capabilities that `target` declares, in wire form: those of its handlers, and extra ones.

    Args:
        target: The server or client.
        dispatcher: Its dispatcher.
        extensions: The extensions that are used beside its own, for revisions that know extensions.

    Raises:
        ProtocolError: The settings that it states of an extension are not valid.
    """
    offered = dispatcher.offered(target)
    extra = target.extra_capabilities()
    found = merge(declare(dispatcher.role, dispatcher.revision, offered, target.announces, extra), extra)
    role, stated = dispatcher.role, target.extension_settings
    own = {one.id: one.declared(role, stated.get(one.id, {}), offered) for one in dispatcher.extensions}
    if extensions and "extensions" in dispatcher.revision.types.ClientCapabilities.model_fields:
        own = {**extensions, **own}
    return merge(found, {"extensions": own}) if own else found


def declare(
    role: Role,
    revision: Revision,
    offered: Iterable[str],
    announced: Collection[str] | None = None,
    extra: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Derive the capabilities of a side from the methods that it handles.

    A method that the other side sends needs a capability of ours. So does each of its modes, unless `extra` states the
    modes. Announcing a change of something that is offered is possible, unless the other side has to ask for it
    with a request, or `announced` lists other notifications only.
    Every server can log, because the runtime sees to it.
    """
    other, log = OTHER_ROLE[role], revision.log
    paths = [log.capabilities[role]] if log is not None and role in log.capabilities else []
    handled = [revision.methods[name] for name in sorted(set(offered)) if name in revision.methods]
    paths += [path for method in handled if (path := method.capabilities.get(other, ("",)))[0] == role]
    modes = (need.capability for method in handled for need in method.needs if need.is_mode)
    paths += [path for path in modes if path[0] == role and not is_declared(extra, *path[1:-1])]
    features = {path[1] for path in paths}
    for name, flag in _announcements(role, revision):
        if flag[1] in features and (announced is None or name in announced):
            paths.append(flag)
    return reduce(merge, (tree_of(path[1:], True if path in revision.flags else {}) for path in paths), {})


@cache
def _announcements(role: Role, revision: Revision) -> list[tuple[str, Path]]:
    """Return the notifications of changes that a side may send unasked, each with the flag that declares it."""
    requested = {one.capabilities.get(OTHER_ROLE[role]) for one in revision.methods.values() if one.kind == "request"}
    return [
        (method.name, path)
        for method in revision.methods.values()
        if method.kind == "notification" and (path := method.capabilities.get(role, ("",)))[0] == role
        if path in revision.flags and path not in requested
    ]


def merge(tree: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return `tree` with everything that `more` adds, at any depth."""
    merged = dict(tree)
    for name, value in more.items():
        known = merged.get(name)
        merged[name] = merge(known, value) if is_object(known) and is_object(value) else value
    return merged


def tree_of(path: Sequence[str], value: object) -> dict[str, Any]:
    """Return capabilities of one side that hold a value where names lead, and nothing else."""
    name, *rest = path
    return {name: tree_of(rest, value) if rest else value}


def is_declared(tree: Mapping[Any, Any], *path: str) -> bool:
    """Return whether the capabilities of a side hold a path; or those of both sides, where the path names the side."""
    node: Any = tree
    for name in path:
        node = node.get(name) if is_object(node) else None
        if node is None or node is False:
            return False
    return True


def is_offered(method: Method, offers: Mapping[str, Any]) -> bool:
    """Return whether a server declares the capability that a notification of it needs, if any."""
    if method.extension is not None and method.declared_by != "client":
        return is_declared(offers, "extensions", method.extension)
    needed = method.capabilities.get("server")
    return needed is None or is_declared(offers, *needed[1:])


def missing(
    method: Method, revision: Revision, role: Role, declared: Mapping[Role, Mapping[str, Any]], params: object = None
) -> Path | None:
    """Return the undeclared capability that a method needs; `None` if `role` may send it."""
    if (id_ := method.extension) is not None:
        for side in (OTHER_ROLE[role], role):
            if method.declared_by in (side, "both") and not is_declared(declared, side, "extensions", id_):
                return side, "extensions", id_
        setting: Path = (OTHER_ROLE[role], "extensions", id_, method.setting or "")
        return None if method.setting is None or is_declared(declared, *setting) else setting
    path = method.capabilities.get(role)
    if path is not None and method is not revision.log and not is_declared(declared, *path):
        arising = (need.capability for need in method.needs if not need.implied and need.arises(params))
        return next(arising, path)  # a server that has nothing to log to drops the message
    return unmet(method, declared, params) if method.needs else None


def unmet(
    method: Method, declared: Mapping[Role, Mapping[str, Any]], params: object, *, received: bool = False
) -> Path | None:
    """Return the undeclared capability that the params of a request need, if there is one.

    Args:
        method: The method.
        declared: Side -> its capabilities.
        params: The typed params.
        received: True if the request came, and is not about to be sent.
    """
    for need in method.needs:
        if not (received and need.tolerated) and need.arises(params) and not is_declared(declared, *need.capability):
            others = any(is_declared(declared, *other.capability) for other in method.needs)
            if not need.implied or others or not is_declared(declared, *need.capability[:-1]):
                return need.capability
    return None
