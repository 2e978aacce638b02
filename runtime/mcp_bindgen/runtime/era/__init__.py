"""The two eras of the protocol: how connections begin, and how messages name their revision. Imports `protocol`."""
