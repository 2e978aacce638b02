"""Tap between a client and a server: forwards bytes unmodified, and holds each message against its schema."""

from mcp_bindgen.testing.judge import MessageJudge, Violation, judge_of

from .recorder import Lines, Recorder
from .stdio import forward
from .trace import Trace, TracedMessage

__all__ = ["Lines", "MessageJudge", "Recorder", "Trace", "TracedMessage", "Violation", "forward", "judge_of"]
