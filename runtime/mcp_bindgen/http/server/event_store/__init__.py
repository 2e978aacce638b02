"""Stores of events for clients that reconnect."""
