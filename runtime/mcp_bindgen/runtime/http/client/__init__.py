"""The client's side: a transport in which every message is a request of its own."""
