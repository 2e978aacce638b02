"""Transports without HTTP: stdio, and memory."""
