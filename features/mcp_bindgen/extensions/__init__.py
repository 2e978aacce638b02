"""Engines of protocol extensions, where generated code alone is not enough.

Imports `runtime` and `cluster`. Each extension has a folder; generated packages import it as their engine.
"""
