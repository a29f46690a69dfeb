"""The prompts, and completion of their arguments and of resource URIs."""
