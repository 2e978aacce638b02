from mcp_bindgen.conversion.document import Model as Model

from .emitter import BRIDGES as BRIDGES
from .emitter import Bindings as Bindings
from .emitter import Emitter as Emitter
from .emitter import Options as Options
from .emitter import Settings as Settings
from .emitter import Target as Target
from .header import MARK as MARK
from .project import wanted as wanted
from .refresh import Update as Update
from .refresh import update as update
from .registry import DEFAULT as DEFAULT
from .registry import languages as languages
from .requested import Request as Request
from .requested import targets as targets
from .writer import drift as drift
from .writer import write as write
