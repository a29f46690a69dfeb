"""The admin of playbooks: all rows are readable, changes go through the services."""

from playbooks.admin import bullets, playbooks, reviews, similarity_cache, trials, versions

__all__ = ["bullets", "playbooks", "reviews", "similarity_cache", "trials", "versions"]
