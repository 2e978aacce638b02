from .document import BadLock as BadLock
from .document import Lock as Lock
from .document import LockedServer as LockedServer
from .document import Snapshot as Snapshot
from .guard import Guard as Guard
from .guard import NotAsLocked as NotAsLocked
from .verdict import LockStatus as LockStatus
from .verdict import Verdict as Verdict
