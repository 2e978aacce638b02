"""Take projects from one revision to another without losing a line of their owners."""
