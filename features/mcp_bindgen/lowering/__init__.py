"""Lowering of tools for model providers: schemas that a provider accepts, with codecs that lose no call unnoticed.

    from mcp_bindgen.lowering import lower

    lowered = lower(tool, "openai-strict")
    lowered.verdict, lowered.schema, lowered.reasons
    await client.call_tool(tool.name, lowered.decode(arguments))

Imports `app`, `json_schema` and `runtime`; `app` validates the arguments of guarded tools.
"""

from mcp_bindgen.runtime.lazy import lazy_stub

__getattr__ = lazy_stub(__name__)
