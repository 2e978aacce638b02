"""Enter servers in the configuration files of hosts; what else stands there stays as it is."""
