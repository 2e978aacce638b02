"""Readers of the contracts of projects, which another wing or package provides."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from mcp_bindgen.spec import BadInput

from .plan import ProjectContract
from .project import Project


class Contracts(Protocol):
    """Object of the entry point `mcp_bindgen.contracts`."""

    def read(self, file: Path) -> ProjectContract:
        """Return the contract in a file."""
        ...

    def of_module(self, words: str, known: ProjectContract | None) -> ProjectContract:
        """Return a contract whose server calls the functions of a module: `known`, or else that of the functions."""
        ...

    def of_server(self, words: str, env: list[str] | None) -> tuple[ProjectContract, str | None]:
        """Return the contract of a live server and the words for it without secrets; no words for a file."""
        ...

    def generated_files(self, project: Project) -> dict[str, str]:
        """Return the generated files of a project, by their names in `project.generated`."""
        ...


def contracts() -> Contracts:
    """Return the reader of contracts.

    Raises:
        BadInput: None is installed, or several are.
        ImportError: It cannot be imported.
    """
    found = entry_points(group="mcp_bindgen.contracts")
    if not found:
        raise BadInput("contracts need the workbench, which is not installed", fix="install all of mcp-bindgen")
    if len(found) > 1:
        names = ", ".join(sorted(point.value for point in found))
        raise BadInput(f"several packages read contracts: {names}", fix="uninstall all but one")
    (point,) = found
    loaded: Contracts = point.load()
    return loaded
