"""A site with believable data, served as in production: for Lighthouse and the README's pictures.

Not a test and not imported by one: it sets the environment before Django reads it.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accounts.models import User
    from evolution.models import EvolutionJob
    from playbooks.models import Playbook


@dataclass(frozen=True)
class Demo:
    """Where it is served, the cookie of who is logged in, and what is worth a look."""

    url: str
    cookie: str
    playbook: "Playbook"
    job: "EvolutionJob"
    shared: str

    @property
    def pages(self) -> dict[str, str]:
        one = self.playbook.get_absolute_url()
        return {
            "overview": f"{one}/overview",
            "playbooks": "/playbooks",
            "playbook": one,
            "versions": f"{one}/versions",
            "diff": f"{one}/versions/3/diff?against=1",
            "outcomes": f"{one}/outcomes",
            "evolution": self.job.get_absolute_url(),
            "usage": "/usage",
            "keys": "/keys",
            "connect": "/connect",
            "starters": "/playbooks/new",
            "start": "/start",
            "evidence": f"{one}/evidence",
            "inbox": "/inbox",
            "account": "/overview",
            "search": "/go?q=test",
            "sessions": "/sessions",
            "shares": f"{one}/shares?kind=diff",
            "shared": self.shared,
            "webhook": "/settings/webhook",
            "playground": "/playground",
        }


@contextmanager
def demo_site() -> Iterator[Demo]:
    """The site in a thread of this process, on a database of its own."""
    with tempfile.TemporaryDirectory(prefix="ace-demo-") as folder:
        _prepare(folder)
        from django.core.management import call_command  # noqa: PLC0415 - after the environment

        call_command("migrate", verbosity=0)
        call_command("collectstatic", interactive=False, verbosity=0)
        # WhiteNoise looks once at what was collected.
        from config.asgi import build_application  # noqa: PLC0415 - see above
        from tests.harness.live_server import serving  # noqa: PLC0415 - as above

        user, playbook, job = build_demo()
        with serving(build_application()) as url:
            here = url.replace("127.0.0.1", "localhost")
            yield Demo(here, _cookie(user), playbook, job, _shared(playbook, user))


def _prepare(folder: str) -> None:
    secret = "demo-" * 10
    os.environ.update(
        DJANGO_SETTINGS_MODULE="config.settings.base",
        DJANGO_ALLOW_ASYNC_UNSAFE="true",
        ACE_DATA_DIR=folder,
        ACE_LOCAL="false",
        HTTPS="false",
        DATABASE_URL="",
        LOG_LEVEL="error",
        SECRET_KEY=secret,
        JWT_SECRET_KEY=secret,
        FIELD_ENCRYPTION_KEYS=secret,
    )
    import django  # noqa: PLC0415 - after the environment

    django.setup()


def _shared(playbook: "Playbook", user: "User") -> str:
    from core.security.scopes import Principal  # noqa: PLC0415 - after the environment
    from evolution.sharing import create_share_link  # noqa: PLC0415 - as above

    made = create_share_link(playbook=playbook, by=Principal.of(user), kind="evidence")
    return f"/share/{made[1]}"


def _cookie(user: "User") -> str:
    from django.test import Client  # noqa: PLC0415 - after the environment

    from tests.harness.clients import log_in_client  # noqa: PLC0415 - as above

    client = Client()
    log_in_client(client, user)
    return client.cookies["sessionid"].value


def build_demo() -> "tuple[User, Playbook, EvolutionJob]":
    """What `manage.py demo` makes; its first playbook, and the evolution that taught it most."""
    from config.demo import builder  # noqa: PLC0415 - after the environment
    from evolution.models import EvolutionJob  # noqa: PLC0415 - as above
    from playbooks.models import Playbook  # noqa: PLC0415 - as above

    user = builder.build_demo(password="look at this demo")
    playbook = Playbook.objects.filter(owner=user).get(name__contains="shop")
    made = EvolutionJob.objects.filter(playbook=playbook).exclude(to_version=None)
    return user, playbook, made.order_by("-to_version__bullet_count", "created_at")[0]
