"""Talks to implementations of MCP that are not ours, and writes down what worked."""
