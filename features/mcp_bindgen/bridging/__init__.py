"""Conversion between revisions: servers and clients of one revision speak another one. Imports `runtime`."""
