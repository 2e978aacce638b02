"""One side of a connection at work: sessions, servers, clients and what handlers see. Imports `eras` and `core`."""
