"""The HTTP middleware of /mcp, and the metrics of its requests."""
