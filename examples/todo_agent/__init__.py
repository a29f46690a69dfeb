"""A command-line agent that keeps a list of todos, with or without a playbook of ACE."""
