"""Have a server with a contract speak one more revision: its generated files are made for all of them."""

from __future__ import annotations

from dataclasses import replace

from mcp_bindgen.contract.document import read_contract
from mcp_bindgen.spec import BadInput, Store, transaction
from mcp_bindgen.spec.revisions import order
from mcp_bindgen.spec.transaction import Change

from ..generated.regeneration import generated_files
from ..generated.replacement import replace_generated
from ..project import Project


def added(project: Project, revision: str, *, force: bool = False) -> tuple[dict[str, Change], tuple[str, ...]]:
    """Return what one more revision changes in the folder of a project, and the generated files that are left.

    Args:
        project: The project.
        revision: The revision.
        force: Replace generated files that somebody edited; they are kept under another name.

    Raises:
        BadInput: There is no such revision, the contract cannot be served in it, or there is no contract: handlers of
            one revision are a module of their own.
    """
    Store().pin(revision)
    if project.contract is None or project.kind != "server":
        again = f"mcp-bindgen scaffold {project.kind} NAME --revision {project.revisions[-1]} --revision {revision}"
        raise BadInput(
            "only a server with a contract speaks another revision with the same code",
            file=project.file,
            fix=f"see how a project with both is laid out: {again}",
        )
    wider = replace(project, revisions=tuple(sorted({*project.revisions, revision}, key=order)))
    files = generated_files(wider, read_contract(project.contract))
    report = replace_generated(project.generated, files, force=force, dry_run=True)
    place = project.generated.relative_to(project.folder)
    changes: dict[str, Change] = {}
    for name, aside in report.moved:
        changes[(place / aside).as_posix()] = Change(None, transaction.read(project.generated / name))
    for name in report.written:
        before = transaction.read(project.generated / name)
        changes[(place / name).as_posix()] = Change(before, files[name].encode())
    text = (project.file).read_text("utf-8")
    changes[project.file.name] = Change(text.encode(), wider.written(text).encode())
    return changes, report.kept
