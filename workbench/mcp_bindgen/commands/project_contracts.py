"""Entry point `mcp_bindgen.contracts`: contracts for projects that `scaffold` starts and `upgrade` changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mcp_bindgen.app.catalog import SCOPES
from mcp_bindgen.contract.code import regeneration, server
from mcp_bindgen.contract.code.functions import Functions, functions_of
from mcp_bindgen.contract.code.typed_client import client_class
from mcp_bindgen.contract.document import contract_of, read_contract
from mcp_bindgen.contract.functions import document_of_module
from mcp_bindgen.contract.model import Contract
from mcp_bindgen.contract.text import write
from mcp_bindgen.scaffold.plan import Plan, ProjectContract
from mcp_bindgen.scaffold.project import Project

from .contract import is_document, warn_of_names
from .live import Connection, offers
from .servers import public


@dataclass(frozen=True)
class _Known(ProjectContract):
    """Contract of a project, and the functions that its server calls, if there are any."""

    contract: Contract
    functions: Functions | None

    def calls(self) -> list[str]:
        return server.first_calls(self.contract)

    def client_class(self, package: str) -> str:
        return client_class(package)

    def refuse_unservable(self, revisions: Sequence[str]) -> None:
        regeneration.refuse_unservable(self.contract, revisions, self.source)

    def server_files(self, plan: Plan) -> dict[str, str]:
        return server.server_files(plan, self.contract, self.functions)

    def generated_files(self, project: Project) -> dict[str, str]:
        return regeneration.generated_files(project, self.contract)

    def warn(self) -> None:
        warn_of_names(self.contract)


def _known(contract: Contract, source: Path = Path("contract.json"), text: str | None = None) -> _Known:
    """Return a contract for a project; `contract.json` is the file of one that is in no file yet."""
    scopes = sorted({scope for entry in contract.all_entries for scope in entry.raw.get(SCOPES, ())})
    text = write(contract.document) if text is None else text
    return _Known("--contract", source, text, contract.info, scopes, None, contract, None)


def read(file: Path) -> ProjectContract:
    """Return the contract in a file."""
    return _known(read_contract(file), file, file.read_bytes().decode("utf-8"))


def of_module(words: str, known: ProjectContract | None) -> ProjectContract:
    """Return a contract whose server calls the functions of a module: `known`, or else that of the functions."""
    found = functions_of(words)
    if not isinstance(known, _Known):
        known = _known(contract_of(document_of_module(words), Path(words)))
    return replace(known, option="--from-module", functions=found, requirement=found.requirement)


def of_server(words: str, env: list[str] | None) -> tuple[ProjectContract, str | None]:
    """Return the contract of a live server and the words for it without secrets; no words for a file."""
    if is_document(words):
        return read(Path(words)), None
    return _known(offers(words, Connection(env=env))), public(words)


def generated_files(project: Project) -> dict[str, str]:
    """Return the generated files of a project, by their names in `project.generated`."""
    return regeneration.project_files(project)
