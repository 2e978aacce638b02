"""Check the name of a project, and derive the names of its parts."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from mcp_bindgen.ir.naming import class_name
from mcp_bindgen.spec import BadInput

from .project import is_module

_TAKEN = {"mcp_bindgen", "test", "tests", "src", "contract", "conftest", "pytest", "anyio", "pydantic", "mcp"}
"""Names of packages that a project's package would hide, or be mistaken for."""

_CLASSES = {"AnyClient", "Client", "Context", "Curious", "HttpApp", "Json", "Path", "Server", "ToolError", "TypeAlias"}
"""Names that the files of projects import or define beside the project's class."""


@dataclass(frozen=True)
class Names:
    """The names of a project.

    Attributes:
        project: As it was given, e.g. `weather-app`.
        package: The import name, e.g. `weather_app`.
        class_: The name of its class, e.g. `WeatherApp`.
    """

    project: str
    package: str
    class_: str


def names_of(project: str) -> Names:
    """Return the names of a project that is to be called `project`.

    Raises:
        BadInput: It cannot be called that.
    """
    package = project.replace("-", "_")
    fix = "use letters, digits, - and _, as in weather-app"
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?", project) or not package.isidentifier():
        raise BadInput(f"{project!r} is no name for a project", fix=fix)
    if not is_module(package):
        raise BadInput(f"{project!r} is a word of Python's", fix=f"try {project}-server")
    if package.lower() in {name.lower() for name in sys.stdlib_module_names} | _TAKEN:
        raise BadInput(f"{project!r} would stand in the way of the module {package}", fix=f"try my-{project}")
    class_ = class_name(package)
    return Names(project, package, f"My{class_}" if class_ in _CLASSES else class_)
