"""Servers and typed clients of contracts: what generated contract code stands on.

A contract lists the tools, prompts and resources of one server. Imports everything else of the runtime;
nothing else of the runtime imports it. Modules with an underscore are for this folder alone.
"""

from typing import TYPE_CHECKING

from ..core.lazy import lazy_modules

if TYPE_CHECKING:
    from .app import App as App, Dynamic as Dynamic
    from .base import Contract as Contract
    from .call_arguments import ABSENT as ABSENT, Absent as Absent, arguments as arguments, texts as texts
    from .call_arguments import whole as whole
    from .catalog import Catalog as Catalog
    from .client import ContractClient as ContractClient, structured as structured, succeeded as succeeded
    from .completions import Completion as Completion
    from .complexity import MOST_STEPS as MOST_STEPS, Complexity as Complexity
    from .delegation import delegate as delegate
    from .errors import BadFunction as BadFunction
    from .errors import InvalidArguments as InvalidArguments, InvalidResult as InvalidResult
    from .errors import ResourceNotFound as ResourceNotFound, ToolError as ToolError
    from .errors import UnexpectedResult as UnexpectedResult
    from .functions import public_functions as public_functions, tool_entry as tool_entry
    from .handlers import missing_method as missing_method
    from .handlers import prompt as prompt, resource as resource, template as template, tool as tool
    from .model import Model as Model
    from .output_schemas import OutputSchemas as OutputSchemas
    from .uri_template import UriTemplate as UriTemplate, Variable as Variable

_MODULES = {
    "app": ["App", "Dynamic"],
    "base": ["Contract"],
    "call_arguments": ["ABSENT", "Absent", "arguments", "texts", "whole"],
    "catalog": ["Catalog"],
    "client": ["ContractClient", "structured", "succeeded"],
    "completions": ["Completion"],
    "complexity": ["MOST_STEPS", "Complexity"],
    "delegation": ["delegate"],
    "errors": ["BadFunction", "InvalidArguments", "InvalidResult", "ResourceNotFound", "ToolError", "UnexpectedResult"],
    "functions": ["public_functions", "tool_entry"],
    "handlers": ["missing_method", "prompt", "resource", "template", "tool"],
    "model": ["Model"],
    "output_schemas": ["OutputSchemas"],
    "uri_template": ["UriTemplate", "Variable"],
}

__getattr__ = lazy_modules(__name__, _MODULES)
