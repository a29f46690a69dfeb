"""The connect page."""
