"""Times of day as logs write them: what Django's own pages (the admin) show."""

DATETIME_FORMAT = "j M Y, H:i"
DATE_FORMAT = "j M Y"
TIME_FORMAT = "H:i"
