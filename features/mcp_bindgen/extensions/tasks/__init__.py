"""Tasks: requests that go on after they were answered, and outlive connections and processes (extension "Tasks").

A `TaskStore` holds them, a `TaskRunner` decides where they run.
"""

from typing import TYPE_CHECKING

from mcp_bindgen.runtime.lazy import lazy_modules

if TYPE_CHECKING:
    from .client import ClientEngine as ClientEngine
    from .client import Task as Task
    from .client import TaskCancelled as TaskCancelled
    from .engine import ServerEngine as ServerEngine
    from .limits import TaskLimits as TaskLimits
    from .record import TaskRecord as TaskRecord
    from .runner import LocalRunner as LocalRunner
    from .runner import Run as Run
    from .runner import TaskRunner as TaskRunner
    from .runners.docket import DocketRunner as DocketRunner
    from .runners.procrastinate import ProcrastinateRunner as ProcrastinateRunner
    from .service import Tasks as Tasks
    from .service import UnknownTask as UnknownTask
    from .store.base import TaskStore as TaskStore
    from .store.memory import MemoryTaskStore as MemoryTaskStore
    from .store.redis import RedisTaskStore as RedisTaskStore
    from .store.sqlite import SqliteTaskStore as SqliteTaskStore
    from .tools import ToolTask as ToolTask
    from .tools import background as background
    from .tools import task as task

_MODULES = {
    "client": ["ClientEngine", "Task", "TaskCancelled"],
    "engine": ["ServerEngine"],
    "limits": ["TaskLimits"],
    "record": ["TaskRecord"],
    "runner": ["LocalRunner", "Run", "TaskRunner"],
    "runners.docket": ["DocketRunner"],
    "runners.procrastinate": ["ProcrastinateRunner"],
    "service": ["Tasks", "UnknownTask"],
    "store.base": ["TaskStore"],
    "store.memory": ["MemoryTaskStore"],
    "store.redis": ["RedisTaskStore"],
    "store.sqlite": ["SqliteTaskStore"],
    "tools": ["ToolTask", "background", "task"],
}

__getattr__ = lazy_modules(__name__, _MODULES)
