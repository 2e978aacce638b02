"""What programs call: connect to a server, host several, run one from the command line.

Imports all but `contract`.
"""
