from .callers import BadCallers as BadCallers
from .callers import Callers as Callers
from .changes import Change as Change
from .changes import Relation as Relation
from .changes import Verdict as Verdict
from .changes import Witness as Witness
from .changes import compare as compare
from .snapshot import Snapshot as Snapshot
