"""What users and staff can do with accounts; pages, REST and the admin call these."""
