"""Run tasks in queues that exist; each module needs an extra of its own, and is imported by who wants it."""
