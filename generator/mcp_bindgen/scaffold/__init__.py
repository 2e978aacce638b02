"""Skeleton projects that users own: laid out once, and kept apart from what is generated into them."""

from typing import TYPE_CHECKING

from mcp_bindgen.runtime.core.lazy import lazy

if TYPE_CHECKING:
    from .check.contract_check import Problem, check_contract
    from .generated.contract_package import contract_class, contract_files
    from .generated.regeneration import generate_contract, project_files
    from .generated.replacing import Report, replace_generated
    from .generated.typed_client import client_class, client_files

__all__ = [
    "Problem",
    "Report",
    "check_contract",
    "client_class",
    "client_files",
    "contract_class",
    "contract_files",
    "generate_contract",
    "project_files",
    "replace_generated",
]

__getattr__ = lazy(
    __name__,
    {
        "Problem": "check.contract_check",
        "Report": "generated.replacing",
        "check_contract": "check.contract_check",
        "client_class": "generated.typed_client",
        "client_files": "generated.typed_client",
        "contract_class": "generated.contract_package",
        "contract_files": "generated.contract_package",
        "generate_contract": "generated.regeneration",
        "project_files": "generated.regeneration",
        "replace_generated": "generated.replacing",
    },
)
