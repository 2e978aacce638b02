"""Engines of protocol extensions, where generated code alone is not enough.

Imports `bridging`, `cluster`, `extension_abi`, `http`, `runtime` and `sqlite`.

`tasks` is the engine of generated packages; `skills` and `apps` read folders and metadata.
"""
