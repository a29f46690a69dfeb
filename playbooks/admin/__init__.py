"""The admin of playbooks: all rows are readable, changes go through the services."""

from playbooks.admin import contents, playbooks

__all__ = ["contents", "playbooks"]
