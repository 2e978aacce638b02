"""Python-first servers (`App`), servers and clients of contracts, and JSON Schema validation.

Imports `extensions` and `runtime`; needs the extra `app`.
"""

from typing import TYPE_CHECKING

from mcp_bindgen.runtime.lazy import lazy_modules

if TYPE_CHECKING:
    from mcp_bindgen.runtime.session.context import Context as Context
    from .app import App as App, Dynamic as Dynamic, run as run
    from .catalog import Catalog as Catalog
    from .client import ContractClient as ContractClient, structured as structured, succeeded as succeeded
    from .complexity import MOST_STEPS as MOST_STEPS, Complexity as Complexity
    from .contract import Contract as Contract
    from .errors import BadFunction as BadFunction, InvalidArguments as InvalidArguments
    from .errors import InvalidResult as InvalidResult, ResourceNotFound as ResourceNotFound, ToolError as ToolError
    from .errors import UnexpectedResult as UnexpectedResult
    from .features import Completion as Completion
    from .functions import delegate as delegate, public_functions as public_functions, tool_entry as tool_entry
    from .handlers import missing_method as missing_method, prompt as prompt, resource as resource
    from .handlers import template as template, tool as tool
    from .model import Model as Model
    from .uri_template import UriTemplate as UriTemplate, Variable as Variable
    from .validation import OutputSchemas as OutputSchemas
    from .values import ABSENT as ABSENT, Absent as Absent, arguments as arguments, texts as texts, whole as whole

_MODULES = {
    "app": ["App", "Dynamic", "run"],
    "catalog": ["Catalog"],
    "client": ["ContractClient", "structured", "succeeded"],
    "complexity": ["MOST_STEPS", "Complexity"],
    "contract": ["Contract"],
    "errors": ["BadFunction", "InvalidArguments", "InvalidResult", "ResourceNotFound", "ToolError", "UnexpectedResult"],
    "features": ["Completion"],
    "functions": ["delegate", "public_functions", "tool_entry"],
    "handlers": ["missing_method", "prompt", "resource", "template", "tool"],
    "model": ["Model"],
    "uri_template": ["UriTemplate", "Variable"],
    "validation": ["OutputSchemas"],
    "values": ["ABSENT", "Absent", "arguments", "texts", "whole"],
    ".runtime.session.context": ["Context"],
}

__getattr__ = lazy_modules(__name__, _MODULES)
