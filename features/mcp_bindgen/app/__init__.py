"""Python-first servers (`App`), servers and clients of contracts, and JSON Schema validation.

Imports `extensions` and `runtime`; needs the extra `app`.
"""

from typing import TYPE_CHECKING

from mcp_bindgen.runtime.lazy import lazy_modules

if TYPE_CHECKING:
    from .app import App as App
    from .app import Dynamic as Dynamic
    from .base import Contract as Contract
    from .call_arguments import ABSENT as ABSENT
    from .call_arguments import Absent as Absent
    from .call_arguments import arguments as arguments
    from .call_arguments import texts as texts
    from .call_arguments import whole as whole
    from .catalog import Catalog as Catalog
    from .client import ContractClient as ContractClient
    from .client import structured as structured
    from .client import succeeded as succeeded
    from .completions import Completion as Completion
    from .complexity import MOST_STEPS as MOST_STEPS
    from .complexity import Complexity as Complexity
    from .delegation import delegate as delegate
    from .errors import BadFunction as BadFunction
    from .errors import InvalidArguments as InvalidArguments
    from .errors import InvalidResult as InvalidResult
    from .errors import ResourceNotFound as ResourceNotFound
    from .errors import ToolError as ToolError
    from .errors import UnexpectedResult as UnexpectedResult
    from .functions import public_functions as public_functions
    from .functions import tool_entry as tool_entry
    from .handlers import missing_method as missing_method
    from .handlers import prompt as prompt
    from .handlers import resource as resource
    from .handlers import template as template
    from .handlers import tool as tool
    from .model import Model as Model
    from .output_schemas import OutputSchemas as OutputSchemas
    from .serving import run as run
    from .uri_template import UriTemplate as UriTemplate
    from .uri_template import Variable as Variable
    from mcp_bindgen.runtime.session.context import Context as Context

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
    "serving": ["run"],
    "uri_template": ["UriTemplate", "Variable"],
    ".runtime.session.context": ["Context"],
}

__getattr__ = lazy_modules(__name__, _MODULES)
