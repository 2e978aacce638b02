"""Say what peers of another revision will miss of what a class offers."""

from __future__ import annotations

from collections.abc import Iterable

from .chain import chain


def missed(home: str, revision: str, handled: Iterable[str], asked: Iterable[str] = ()) -> list[str]:
    """Return what does not arrive at peers of a revision as it is meant, a sentence each.

    Args:
        home: The revision that a class is typed by.
        revision: The revision of its peers.
        handled: The methods that the class handles: their answers go out.
        asked: The methods by which it asks and tells: their params go out.

    Raises:
        LookupError: No steps lead from the one revision to the other.
    """
    there = chain(home, revision)
    if there is None:
        raise LookupError(f"no bridge leads from MCP {home} to MCP {revision}")
    found: dict[str, list[str]] = {}
    for methods, part in ((handled, "results"), (asked, "params")):
        for method in methods:
            for remark in there.remarks(method):
                if remark.part in (part, "method") and method not in found.setdefault(remark.reason, []):
                    found[remark.reason].append(method)
    return [f"{', '.join(methods)}: {reason}" for reason, methods in found.items()]
