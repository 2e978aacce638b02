from .document import BadLock as BadLock
from .document import Lock as Lock
from .document import LockedServer as LockedServer
from .guard import Guard as Guard
from .guard import NotAsLocked as NotAsLocked
