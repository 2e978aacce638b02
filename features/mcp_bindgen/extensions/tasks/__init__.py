"""Tasks: requests whose work continues after the response (extension "Tasks").

A `TaskStore` stores them, a `TaskRunner` decides where they run.
"""

from typing import TYPE_CHECKING

from mcp_bindgen.runtime.lazy import lazy_modules

if TYPE_CHECKING:
    from .client import ClientEngine as ClientEngine, Task as Task, TaskCancelled as TaskCancelled
    from .docket_runner import DocketRunner as DocketRunner
    from .engine import ServerEngine as ServerEngine
    from .procrastinate_runner import ProcrastinateRunner as ProcrastinateRunner
    from .record import TaskRecord as TaskRecord
    from .redis_store import RedisTaskStore as RedisTaskStore
    from .runners import LocalRunner as LocalRunner, Run as Run, TaskRunner as TaskRunner
    from .service import Tasks as Tasks, UnknownTask as UnknownTask
    from .sqlite_store import SqliteTaskStore as SqliteTaskStore
    from .store import MemoryTaskStore as MemoryTaskStore, TaskLimits as TaskLimits, TaskStore as TaskStore
    from .tools import ToolTask as ToolTask, background as background, task as task

_MODULES = {
    "client": ["ClientEngine", "Task", "TaskCancelled"],
    "docket_runner": ["DocketRunner"],
    "engine": ["ServerEngine"],
    "procrastinate_runner": ["ProcrastinateRunner"],
    "record": ["TaskRecord"],
    "redis_store": ["RedisTaskStore"],
    "runners": ["LocalRunner", "Run", "TaskRunner"],
    "service": ["Tasks", "UnknownTask"],
    "sqlite_store": ["SqliteTaskStore"],
    "store": ["MemoryTaskStore", "TaskLimits", "TaskStore"],
    "tools": ["ToolTask", "background", "task"],
}

__getattr__ = lazy_modules(__name__, _MODULES)
