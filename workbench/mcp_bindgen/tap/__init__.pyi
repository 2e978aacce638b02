from mcp_bindgen.testing.judge import MessageJudge as MessageJudge
from mcp_bindgen.testing.judge import Violation as Violation
from mcp_bindgen.testing.judge import judge_of as judge_of

from .recorder import Lines as Lines
from .recorder import Recorder as Recorder
from .stdio import forward as forward
from .trace import Trace as Trace
from .trace import TracedMessage as TracedMessage
