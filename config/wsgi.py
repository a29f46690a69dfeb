"""Pages and REST for servers that speak WSGI; /mcp then runs by ASGI beside it."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
application = get_wsgi_application()
