"""REST API of playbooks."""
