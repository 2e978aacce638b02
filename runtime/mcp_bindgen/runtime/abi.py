"""Export all that generated code imports, and check which generation of it this runtime can run."""

from .lazy import lazy as lazy
from .lazy import lazy_stub

GENERATION = 6
"""Grows whenever generated code of before could not be run any longer."""


def require(generation: int, package: str, command: str) -> None:
    """Refuse a package that another generation of the generator made.

    Args:
        generation: The generation of the package.
        package: Its import name.
        command: Command that generates it again.

    Raises:
        ImportError: The two do not fit.
    """
    if generation != GENERATION:
        raise ImportError(
            f"{package} was generated for generation {generation} of the mcp-bindgen runtime, this is {GENERATION}; "
            f"run: {command}",
            name=package,
        )


__getattr__ = lazy_stub(__name__)
