"""The one clock of leases and waits."""

from accounts.clock import database_now as database_now
