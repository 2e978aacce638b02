"""Lowering of tools for model providers: schemas that a provider accepts, with codecs that lose no call unnoticed.

    from mcp_bindgen.lowering import lower

    lowered = lower(tool, "openai-strict")
    lowered.verdict, lowered.schema, lowered.reasons
    await client.call_tool(tool.name, lowered.decode(arguments))

Imports `app`, for the guards of tools that are `guarded`.
"""

from .profiles import BadProfile as BadProfile
from .profiles import Profile as Profile
from .profiles import names as names
from .profiles import profile as profile
from .request import InvalidArguments as InvalidArguments
from .request import Lowered as Lowered
from .request import RequestTooLarge as RequestTooLarge
from .request import estimated_tokens as estimated_tokens
from .request import exceeded_budgets as exceeded_budgets
from .request import function_name as function_name
from .request import lower as lower
from .request import require_budgets as require_budgets
from .rules import RULES as RULES
from .rules import Effect as Effect
from .rules import Reason as Reason
from .rules import Verdict as Verdict
