from .instrumentation import instrument as instrument
from .instrumentation import uninstrument as uninstrument
