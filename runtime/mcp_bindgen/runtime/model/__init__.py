"""Models: the base class, value types of JSON scalars, and validation."""
