"""docs/*.md as pages at /docs, and as /llms.txt: one list, one renderer."""
