"""Errors for packages that are not installed; each names the extra that brings the package."""

from __future__ import annotations

import re
from collections import Counter
from typing import Self

_REQUIREMENT = re.compile(r"""([\w.-]+)(?:\[([\w,-]+)\])?.*extra == ['"](?!dev\b)([\w-]+)""")
"""Requirement of an extra for users: the distribution, its own extras, and the extra."""


class NotInstalled(ModuleNotFoundError):
    """A package that is not part of every installation is needed and missing; the message installs it.

    Args:
        purpose: The feature that needs the package.
        module: The import name of the package.
        extra: The extra of the feature, which is named if it brings the package.
    """

    def __init__(self, purpose: str, module: str, extra: str) -> None:
        found = extra_with(module, extra)
        wanted = module if found is None else f"'mcp-bindgen[{found}]'"
        super().__init__(f"{purpose} needs {module}, which is not installed; run: pip install {wanted}", name=module)

    @classmethod
    def of(cls, error: ModuleNotFoundError, purpose: str, extra: str) -> Self | ModuleNotFoundError:
        """Return the error for a failed import; the error itself if a module of this program or of `purpose` fails.

        Without an extra, `purpose` is a package of the user, which explains its own imports.
        """
        module = (error.name or "").partition(".")[0]
        known = ("", "mcp_bindgen", purpose.partition(".")[0])
        return error if not extra or module in known else cls(purpose, module, extra)


def extra_with(module: str, preferred: str) -> str | None:
    """Return an extra that brings a module: the preferred one, or else the smallest; `None` if no extra does."""
    from importlib.metadata import PackageNotFoundError, requires  # takes time to load

    try:
        lines = requires("mcp-bindgen") or ()
    except PackageNotFoundError:  # a checkout on the path
        lines = ()
    rows = [found.groups("") for line in lines if (found := _REQUIREMENT.match(line))]
    name = re.compile(rf"{module.replace('_', '-')}\b")
    direct = {extra for distribution, _, extra in rows if name.match(distribution) or extra == module}
    indirect = {extra for _, inner, extra in rows if not direct.isdisjoint(inner.split(","))}
    sizes = Counter(extra for *_, extra in rows)
    return preferred if preferred in direct | indirect else min(direct, key=lambda one: (sizes[one], one), default=None)
