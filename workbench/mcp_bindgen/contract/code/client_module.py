"""Check the module of a typed client against the contract beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mcp_bindgen.ir import build
from mcp_bindgen.report.document import Finding
from mcp_bindgen.scaffold.ownership import stamped
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.json import listed

from ..document import read_contract
from ..model import Contract
from .check import stale
from .typed_client import LEFT_OUT, client_files, saved_name


@dataclass(frozen=True)
class ClientModule:
    """A module that was generated, as the stamp of the contract beside it tells.

    Attributes:
        path: The file.
        class_name: The name of its class in Python.
        revision: The revision that it speaks.
        source: The source of the contract.
        command: The command that makes it again.
    """

    path: Path
    class_name: str
    revision: str
    source: str
    command: str

    @classmethod
    def read(cls, path: Path) -> ClientModule:
        """Return the module at `path`.

        Raises:
            BadInput: No saved contract of ours is beside it.
        """
        stamp = stamped(path.with_name(saved_name(path.name)))
        values = [stamp.get(name) for name in ("class", "revision", "from", "by")]
        if not all(isinstance(value, str) for value in values):
            raise BadInput("has no saved contract of ours beside it", file=path, fix="write both, without --check")
        return cls(path, *map(str, values))

    def contract(self) -> Contract:
        """Return the saved contract; raise `BadInput` if it cannot be used."""
        path = self.path.with_name(saved_name(self.path.name))
        return replace(read_contract(path), left_out=tuple(map(str, listed(stamped(path).get(LEFT_OUT, [])))))

    def problems(self) -> Iterator[Finding]:
        """Yield a finding for each file that was edited, or that is generated differently now."""
        protocol = build(Store().effective(self.revision))
        files = client_files(self.contract(), protocol, self.class_name, self.path.name, self.source, self.command)
        yield from stale(self.path.parent, files, self.command, "the saved contract")
