from .gateway import Gateway as Gateway
from .upstream import GatewayOptions as GatewayOptions
