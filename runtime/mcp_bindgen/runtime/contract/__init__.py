"""What generated contract code needs: servers and clients for the tools, prompts and resources of a contract."""

from typing import TYPE_CHECKING

from ..lazy import lazy

if TYPE_CHECKING:
    from .base import Completion, Contract
    from .catalog import Catalog
    from .client import ContractClient, structured, succeeded
    from .errors import BrokenPromise, InvalidArguments, ResourceNotFound, ToolError, UnexpectedResult
    from .given import ABSENT, Absent, arguments, texts, whole
    from .model import Model
    from .offers import prompt, resource, template, tool
    from .uri_template import UriTemplate, Variable

__all__ = [
    "ABSENT",
    "Absent",
    "BrokenPromise",
    "Catalog",
    "Completion",
    "Contract",
    "ContractClient",
    "InvalidArguments",
    "Model",
    "ResourceNotFound",
    "ToolError",
    "UnexpectedResult",
    "UriTemplate",
    "Variable",
    "arguments",
    "prompt",
    "resource",
    "structured",
    "succeeded",
    "template",
    "texts",
    "tool",
    "whole",
]

__getattr__ = lazy(
    __name__,
    {
        "ABSENT": "given",
        "Absent": "given",
        "BrokenPromise": "errors",
        "Catalog": "catalog",
        "Completion": "base",
        "Contract": "base",
        "ContractClient": "client",
        "InvalidArguments": "errors",
        "Model": "model",
        "ResourceNotFound": "errors",
        "ToolError": "errors",
        "UnexpectedResult": "errors",
        "UriTemplate": "uri_template",
        "Variable": "uri_template",
        "arguments": "given",
        "prompt": "offers",
        "resource": "offers",
        "structured": "client",
        "succeeded": "client",
        "template": "offers",
        "texts": "given",
        "tool": "offers",
        "whole": "given",
    },
)
