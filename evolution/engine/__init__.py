"""The ACE engine in plain Python: no Django, no database, no queue."""
