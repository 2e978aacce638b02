"""Contracts as tests name them."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from mcp_bindgen.contract.document import contract_of, read_contract
from mcp_bindgen.contract.model import Contract

ContractSource: TypeAlias = Contract | Mapping[str, Any] | str | PathLike[str]
"""A contract, its document, or the path of its file."""


def contract_from(source: ContractSource) -> Contract:
    """Return the contract of a source.

    Raises:
        BadInput: The file cannot be read, or the document is not a contract.
    """
    if isinstance(source, Contract):
        return source
    return contract_of(source) if isinstance(source, Mapping) else read_contract(Path(source))
