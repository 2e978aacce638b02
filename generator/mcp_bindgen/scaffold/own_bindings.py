"""Give a project bindings of its own for a revision that is not part of mcp-bindgen, so that clones have them too."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from mcp_bindgen.emit import Bindings, Options
from mcp_bindgen.emit.python import naming
from mcp_bindgen.emit.python.plugin import EMITTER
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.revisions import is_date


@dataclass(frozen=True)
class OwnBindings:
    """Files of a revision that only the folder of the author has.

    Attributes:
        revision: The revision.
        package: The import name of its bindings, e.g. `weather.vdraft`.
        schema: Where its schema is in the project.
        command: What generates the bindings again, in the project's folder.
        files: Path in the project -> text: the schema, its facts, and the bindings.
    """

    revision: str
    package: str
    schema: str
    command: str
    files: dict[str, str]

    @property
    def folder(self) -> str:
        """The folder of the bindings in the project."""
        return f"src/{self.package.replace('.', '/')}"

    @property
    def described(self) -> str:
        """The lines about them in a README."""
        return (
            f"    {self.schema}    MCP {self.revision}, which is not part of mcp-bindgen\n"
            f"    {self.folder}/    generated from it: `{self.command}`\n"
        )


def refused_contract(revision: str, fix: str) -> BadInput:
    """Return the error for a contract in a revision that only the folder of the author has."""
    fact = f"MCP {revision} is not part of mcp-bindgen, and a contract is generated again where nobody imported it"
    return BadInput(fact, fix=fix)


def own_bindings(store: Store, revision: str, project: str) -> OwnBindings:
    """Return the bindings of a revision for the package of a project.

    Raises:
        BadInput: The schema in the user's folder is damaged.
    """
    source = store.effective(revision)
    package = f"{project}.{naming.package(revision)}"
    schema, facts = f"schema/{revision}.json", f"schema/{revision}.toml"
    kept = store.folder(revision)
    files = {schema: (kept / "schema.json").read_text("utf-8")}
    words = ["mcp-bindgen", "generate", "--schema", schema, "--revision", revision]
    if (kept / "semantics.toml").exists():
        files[facts] = (kept / "semantics.toml").read_text("utf-8")
        words += ["--semantics", facts]
    command = shlex.join([*words, "--out", "src", "--package", package])
    as_a_file = replace(source, draft=not is_date(revision))  # as `generate --schema` reads it
    code = Bindings(EMITTER, Path(), Options(package, command), as_a_file).render()
    own = OwnBindings(revision, package, schema, command, files)
    files |= {f"{own.folder}/{name}": text for name, text in code.items()}
    return own
