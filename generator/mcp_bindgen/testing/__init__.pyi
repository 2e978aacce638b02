from .checked import Watched as Watched
from .checked import connected as connected
from .servers import MockServer as MockServer
from .servers import ReplayServer as ReplayServer
from .strategies import arguments as arguments
from .strategies import results as results
