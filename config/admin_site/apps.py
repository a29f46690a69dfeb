"""The app that installs the admin site."""

import sys
from importlib import import_module

from django.apps import apps
from django.contrib.admin.apps import SimpleAdminConfig
from django.utils.module_loading import module_has_submodule


class AdminSiteConfig(SimpleAdminConfig):
    """Django's admin with our site. Not in apps.py, where it would compete with ConfigConfig."""

    default_site = "config.admin_site.site.AceAdminSite"

    def ready(self) -> None:
        super().ready()
        if sys.argv[1:2] == ["run_mcp"]:
            return  # it serves no page, and an agent waits for its start
        for app in apps.get_app_configs():
            # dj-stripe's shows its tables with forms for API keys, and its list of invoices
            # answers 500: accounts link to Stripe's own pages.
            if app.name != "djstripe" and module_has_submodule(app.module, "admin"):
                import_module(f"{app.name}.admin")
