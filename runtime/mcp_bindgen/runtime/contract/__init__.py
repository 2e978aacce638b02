"""What generated contract code needs: servers and clients for the tools, prompts and resources of a contract."""

from typing import TYPE_CHECKING

from ..core.lazy import lazy

if TYPE_CHECKING:
    from .base import Completion, Contract
    from .call_arguments import ABSENT, Absent, arguments, texts, whole
    from .catalog import Catalog
    from .client import ContractClient, structured, succeeded
    from .errors import BrokenPromise, InvalidArguments, ResourceNotFound, ToolError, UnexpectedResult
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
        "ABSENT": "call_arguments",
        "Absent": "call_arguments",
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
        "arguments": "call_arguments",
        "prompt": "offers",
        "resource": "offers",
        "structured": "client",
        "succeeded": "client",
        "template": "offers",
        "texts": "call_arguments",
        "tool": "offers",
        "whole": "call_arguments",
    },
)
