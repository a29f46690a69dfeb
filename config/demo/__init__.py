"""The demo account of `manage.py demo`: sixty days of history from simulated agents."""
