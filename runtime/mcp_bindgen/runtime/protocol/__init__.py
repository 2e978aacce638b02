"""The protocol without I/O: types, messages, routing and the state machine of a connection.

Imports `model`.
"""
