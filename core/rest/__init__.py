from core.optional_imports import without

with without("psycopg", "requests", "yaml"):  # a tenth of a second, 12 MB
    import rest_framework.compat  # noqa: F401 - where it looks for them
