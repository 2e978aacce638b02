"""Skeleton projects that users own: laid out once, and kept apart from generated files."""
