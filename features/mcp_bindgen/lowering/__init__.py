"""Lowering of tools for model providers: schemas that a provider accepts, with codecs that lose no call unnoticed.

    from mcp_bindgen.lowering import lower

    lowered = lower(tool, "openai-strict")
    lowered.verdict, lowered.schema, lowered.reasons
    await client.call_tool(tool.name, lowered.decode(arguments))

Imports `app`, for the guards of tools that are `guarded`.
"""

from .profiles import BadProfile, Profile, names, profile
from .request import (
    InvalidArguments,
    Lowered,
    RequestTooLarge,
    estimated_tokens,
    exceeded_budgets,
    function_name,
    lower,
    require_budgets,
)
from .rules import RULES, Effect, Reason, Verdict

__all__ = [
    "RULES",
    "BadProfile",
    "Effect",
    "InvalidArguments",
    "Lowered",
    "Profile",
    "Reason",
    "RequestTooLarge",
    "Verdict",
    "estimated_tokens",
    "exceeded_budgets",
    "function_name",
    "lower",
    "names",
    "profile",
    "require_budgets",
]
