"""Tasks: requests whose work continues after the response (extension "Tasks").

A `TaskStore` stores them, a `TaskRunner` decides where they run.
"""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__)
