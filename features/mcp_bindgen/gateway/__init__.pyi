from .gateway import Gateway as Gateway
from .gateway import GatewayOptions as GatewayOptions
