"""Staff's view of playbooks: everything readable, changes by the services only."""

from playbooks.admin import contents, playbooks

__all__ = ["contents", "playbooks"]
