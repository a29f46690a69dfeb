"""Playbooks at the REST door."""
