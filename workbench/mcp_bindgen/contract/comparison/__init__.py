"""Compare two contracts: changes, and their impact on clients."""
