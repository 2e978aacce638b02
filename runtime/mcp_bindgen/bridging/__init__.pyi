from mcp_bindgen.runtime.model.scalars import Json as Json

from .chain import Chain as Chain
from .chain import NotConvertible as NotConvertible
from .chain import RuleContext as RuleContext
from .chain import missed as missed
