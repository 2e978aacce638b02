"""Run what extensions of the protocol ask for, where generated code alone is not enough.

Imports `endpoint` and what that stands on, and `storage`; nothing of `http`. Each extension has a folder, which
generated packages name as their engine.
"""
