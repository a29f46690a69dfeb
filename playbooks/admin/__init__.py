"""The admin of playbooks: all rows are readable, changes go through the services."""

from playbooks.admin import bullets, playbooks, reviews, trials, versions

__all__ = ["bullets", "playbooks", "reviews", "trials", "versions"]
