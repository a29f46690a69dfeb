"""Playbooks for AI agents: read the advice before a task, report the outcome after it."""
