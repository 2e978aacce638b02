from .chain import Chain as Chain
from .chain import NotConvertible as NotConvertible
from .chain import missed as missed
