"""What a worker does: claims a job, thinks, publishes; and what keeps it honest meanwhile."""
