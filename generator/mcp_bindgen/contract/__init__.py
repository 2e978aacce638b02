"""Contracts: what a server offers, read from a document, from functions or from a running server, and compared."""
