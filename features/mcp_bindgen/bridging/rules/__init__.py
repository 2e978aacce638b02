"""Functions that rules of `bridges.toml` name: each takes a JSON value and its words, and returns the value converted.

A value may be anything: what a function does not recognise it returns as it is. Converted once, it stays as it is.
"""
