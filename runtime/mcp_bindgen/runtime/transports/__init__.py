"""Ways for messages to travel that need no HTTP. Imports `core` and `endpoint`."""
