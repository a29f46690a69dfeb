"""The tools: their definitions, arguments, results, registry and handlers."""
