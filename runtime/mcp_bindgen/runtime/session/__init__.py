"""One side of a connection at work: sessions, servers, clients and contexts."""
