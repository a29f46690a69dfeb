"""The documentation site: docs/*.md at /docs and /llms.txt, and the OpenAPI document."""
