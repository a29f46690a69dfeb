"""The paper's table for any endpoint: `manage.py ace_benchmark`, docs/engineering/QUALITY.md."""
