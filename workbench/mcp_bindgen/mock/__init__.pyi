from .answers import Answer as Answer
from .answers import read_answers as read_answers
from .running import MockServer as MockServer
from .running import ReplayServer as ReplayServer
from .server import Mock as Mock
from .strategies import arguments as arguments
from .strategies import results as results
