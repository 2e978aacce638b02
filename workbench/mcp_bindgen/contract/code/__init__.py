"""Generate into projects: the code of contracts and typed clients, recognised by header and digest."""
