from django.contrib.admin.apps import AdminConfig


class StaffAdmin(AdminConfig):
    """Django's admin with our site. Not in apps.py, where it would compete with ConfigConfig."""

    default_site = "config.staff.StaffSite"
