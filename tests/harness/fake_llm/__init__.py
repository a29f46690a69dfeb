"""A fake model server for tests."""
