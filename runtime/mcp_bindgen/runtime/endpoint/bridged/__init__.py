"""Make clients and servers of one revision speak others, by the conversions of `bridges`."""
