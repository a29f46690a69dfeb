"""The engine's providers: models over HTTP, and the rules engine."""
