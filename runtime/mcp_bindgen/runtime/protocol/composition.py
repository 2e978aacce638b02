"""Join what the extensions of a class add to its core: routes, answers, and members of definitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, create_model

from .extension import Extension, ExtensionRoutes
from .methods import Method, Request, classes, result_type
from .routing import Route


def added_to(kind: type) -> tuple[ExtensionRoutes, ...]:
    """Return what the extensions among the bases of a class add to its core, in the order of the bases."""
    return tuple(vars(base)["adds"] for base in kind.__mro__ if "adds" in vars(base))


def joined(kind: type, core: Mapping[str, Method], routes: Iterable[Route]) -> list[Route]:
    """Return the routes of a class: those of core, with what its extensions add to them, and those of the extensions.

    Args:
        kind: The class.
        core: Method name -> descriptor, of all methods of core.
        routes: The routes of its side in core.

    Raises:
        TypeError: A method, a handler or a member is taken twice, or an extension is of another core.
    """
    added = added_to(kind)
    _check_taken(kind, core, routes, added)
    extensions = [one.extension for one in added]
    kinds = _Members(kind, extensions)
    found: list[Route] = []
    for route in routes:
        method = kinds.extended(route.method)
        if isinstance(method, Request):
            method = with_answers(method, extensions)
        found.append(route if method is route.method else Route(method, route.handler))
    return [*found, *(route for one in added for route in one.routes)]


def with_answers(method: Request[Any, Any, Any], extensions: Iterable[Extension]) -> Request[Any, Any, Any]:
    """Return a method of core with the types by which extensions may answer it; the same if there are none."""
    more = [kind for one in extensions for kind in one.answering(method.name)]
    return replace(method, alternatives=(*method.alternatives, *more)) if more else method


def _check_taken(
    kind: type, core: Mapping[str, Method], routes: Iterable[Route], added: Iterable[ExtensionRoutes]
) -> None:
    taken: dict[str, object] = {}

    def take(what: str, owner: object) -> None:
        known = taken.setdefault(what, owner)
        if known is not owner:
            raise TypeError(f"{kind.__name__}: {what} is taken by {known} and by {owner}")

    base = getattr(kind, "dispatcher").revision  # noqa: B009 - no attribute of classes in general
    owner = f"MCP {base.name}"
    for name, method in core.items():
        take(f"the method {name!r}", owner)
        for one in classes(*(getattr(method, "answers", ()))):
            take(f"the resultType {result_type(one)!r} of {name!r}", owner)
    for route in routes:
        take(f"the handler {route.handler!r}", owner)
    for addition in added:
        extension = addition.extension
        if not extension.extends_core(base):
            raise TypeError(f"{kind.__name__}: {extension} extends MCP {extension.revision.name}, not {owner}")
        for name in extension.methods:
            take(f"the method {name!r}", extension)
        for route in addition.routes:
            take(f"the handler {route.handler!r}", extension)
        for name in extension.alternatives:
            for answer in extension.answering(name):
                take(f"the resultType {result_type(answer)!r} of {name!r}", extension)
        for definition in extension.extends:
            for wire in extension.members(definition).values():
                take(f"{definition}.{wire}", extension)


class _Members:
    """Params whose types have the members that extensions add to definitions of core, so that one pass reads them."""

    def __init__(self, kind: type, extensions: Iterable[Extension]) -> None:
        self._kinds: dict[Any, type[BaseModel]] = {}
        own: dict[Any, list[Any]] = {}
        for one in extensions:
            for definition, name in one.extends.items():
                own.setdefault(getattr(one.core_types, definition), []).append(getattr(one.types, name))
        for base, more in own.items():
            made: Any = create_model(base.__name__, __base__=(base, *more), __module__=base.__module__)
            self._kinds[base] = made

    def extended(self, method: Method) -> Method:
        """Return a method with params of such a type; the same if it has none."""
        fields: Mapping[str, Any] = getattr(method.params, "model_fields", {}) if self._kinds else {}
        made: dict[str, Any] = {}
        for name, one in fields.items():
            for base, more in self._kinds.items():
                if one.annotation is base or one.annotation == base | None:
                    found = copy(one)
                    found.annotation = more if one.annotation is base else more | None
                    made[name] = (found.annotation, found)
        if not made:
            return method
        base = method.params
        return replace(method, params=create_model(base.__name__, __base__=base, __module__=base.__module__, **made))
