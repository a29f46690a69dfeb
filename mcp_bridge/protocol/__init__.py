"""What all handlers share: authentication, database threads, errors, pagination, text."""
