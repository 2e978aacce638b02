"""Compare contracts: what changed from one to another, and whether clients break."""
