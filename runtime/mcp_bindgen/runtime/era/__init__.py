"""How a connection begins and what each request carries, for each of the two eras of the protocol.

Imports `core`.
"""
