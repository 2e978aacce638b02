"""Add servers to the configuration files of hosts, and remove them; other content remains unchanged."""
