from .chain import Chain as Chain
from .chain import missed as missed
from .step import NotConvertible as NotConvertible
