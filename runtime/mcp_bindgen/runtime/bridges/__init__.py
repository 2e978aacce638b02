"""Conversions between revisions: what generated steps are made of, the rules that they name, and chains of steps.

JSON goes in and comes out; nothing here knows a revision, and no types of any are imported. Imports core.
"""
