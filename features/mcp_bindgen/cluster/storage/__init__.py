"""Access to SQLite files and Redis, for stores of any feature.

Imports the kernel's errors only. The stores define the stored data.
"""
