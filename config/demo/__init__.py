"""A believable history for an instance to look at: `manage.py demo`, and `--remove`."""
