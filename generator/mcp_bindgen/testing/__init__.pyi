from .checked import Watched as Watched
from .checked import connected as connected
from .http import listening as listening
