"""What changed from one contract to another, and whether clients break."""
