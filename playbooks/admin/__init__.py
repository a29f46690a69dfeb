"""The admin of playbooks: everything readable, changes by the services only."""

from playbooks.admin import bullets, playbooks, reviews, similarity_cache, versions

__all__ = ["bullets", "playbooks", "reviews", "similarity_cache", "versions"]
