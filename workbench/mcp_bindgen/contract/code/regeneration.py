"""Generate the contract package of a project again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mcp_bindgen.ir import build
from mcp_bindgen.scaffold.project import Project
from mcp_bindgen.scaffold.replacement import Report, replace_generated
from mcp_bindgen.spec import BadInput, Store

from ..checks import check_members
from ..document import read_contract
from ..model import Contract
from .package import contract_files
from .typed_client import client_class, client_package


def project_files(project: Project) -> dict[str, str]:
    """Return the generated files of a project, by their names in `project.generated`.

    Raises:
        BadInput: The project has no contract, or the contract cannot be used.
    """
    if project.contract is None:
        raise BadInput(
            "the project has no contract, so there is nothing to generate",
            file=project.file,
            fix='name one there, as in contract = "contract.yaml"',
        )
    return generated_files(project, read_contract(project.contract))


def generated_files(project: Project, contract: Contract) -> dict[str, str]:
    """Return the files of `project_files` for a contract that was read already."""
    source, store = source_name(project), Store()
    if project.kind == "server":
        refuse_unservable(contract, project.revisions, project.contract)
        protocols = [build(store.effective(revision)) for revision in project.revisions]
        return contract_files(contract, protocols, project.package, source)
    protocol = build(store.effective(project.revisions[-1]))
    return client_package(contract, protocol, client_class(project.package), source)


def generate_contract(folder: Path, *, force: bool = False) -> Report:
    """Write the generated files of a project; edited files are left.

    Args:
        folder: The project's folder.
        force: Move edited files aside and write theirs too.

    Raises:
        BadInput: There is no project with a contract, or it cannot be used, or the files cannot be written.
    """
    project = Project.read(folder)
    return replace_generated(project.generated, project_files(project), force=force)


def source_name(project: Project) -> str:
    """Return the file of the contract as the project names it."""
    assert project.contract is not None
    return project.contract.relative_to(project.folder).as_posix()


def refuse_unservable(contract: Contract, revisions: Sequence[str], source: Path | None) -> None:
    """Refuse a contract whose entries one of the revisions that shall serve them does not allow.

    Raises:
        BadInput: With the pointer to the first such entry, and the revision.
    """
    for revision in revisions:
        try:
            check_members(contract.document, revision)
        except BadInput as error:
            raise BadInput(
                f"MCP {revision} does not allow it: {error.message}",
                file=source,
                pointer=error.pointer,
                fix="change the entry, or leave that revision out",
            ) from None
