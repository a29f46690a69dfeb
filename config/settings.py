"""All settings, read from the environment (and `.env`) with django-environ.

`.env.example` documents every variable; tests/config/test_env_example.py compares both.
"""

from datetime import timedelta
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from corsheaders.defaults import default_headers
from django.core.exceptions import ImproperlyConfigured

from config import fixed
from config.environment import Environment, share_figures, sqlite_in
from config.fixed import *  # noqa: F403 - a settings module is its names
from config.logs import logging_of
from config.paying import API, with_billing

BASE_DIR = Path(__file__).resolve().parent.parent
env = Environment()
env.read_env(str(BASE_DIR / ".env"))

# --- where and how it runs ---------------------------------------------------------------------
DEBUG = env.bool("DEBUG", default=False)
DATA_DIR = (BASE_DIR / env.str("ACE_DATA_DIR", default="var")).resolve()
DATABASE_URL = env.str("DATABASE_URL", default="")
EMBEDDED = not DATABASE_URL
# One machine, plain HTTP, secrets in ACE_DATA_DIR: `make run`, with SQLite or with PostgreSQL.
LOCAL = env.bool("ACE_LOCAL", default=EMBEDDED)
HOST = env.str("ACE_HOST", default="127.0.0.1")
PORT = env.port("PORT", default=8000)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
SECRET_KEY = env.str("SECRET_KEY", default="")
JWT_SECRET_KEY = env.str("JWT_SECRET_KEY", default="")
# The first seals what is stored sealed; every one opens it (see `manage.py rotate_encryption`).
FIELD_ENCRYPTION_KEYS = env.list("FIELD_ENCRYPTION_KEYS", default=[])
if LOCAL or EMBEDDED:
    try:
        DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(f"Set ACE_DATA_DIR to a directory of yours: {error}.") from None
# Secrets that are not set are made here at the first start, for every process that shares it.
SECRETS_DIR = env.str("ACE_SECRETS_DIR", default=str(DATA_DIR) if LOCAL else "")
if SECRETS_DIR:
    SECRET_KEY = SECRET_KEY or env.kept("secret_key", SECRETS_DIR)
    JWT_SECRET_KEY = JWT_SECRET_KEY or env.kept("jwt_secret_key", SECRETS_DIR)
    FIELD_ENCRYPTION_KEYS = FIELD_ENCRYPTION_KEYS or [env.kept("field_key", SECRETS_DIR)]
for name, values in {
    "SECRET_KEY": [SECRET_KEY],
    "JWT_SECRET_KEY": [JWT_SECRET_KEY],
    "FIELD_ENCRYPTION_KEYS": FIELD_ENCRYPTION_KEYS or [""],
}.items():
    if min(map(len, values)) < 32:
        raise ImproperlyConfigured(
            f"Set {name} to at least 32 random characters, for example the output of "
            f'`python -c "import secrets; print(secrets.token_urlsafe(48))"`.'
        )

# --- applications ------------------------------------------------------------------------------
ROOT_URLCONF, ASGI_APPLICATION = "config.urls", "config.asgi.application"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "config.context.site",
            ],
        },
    }
]

# --- database ----------------------------------------------------------------------------------
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASE_POOL = env.bool("DATABASE_POOL", default=True)
if EMBEDDED:
    DATABASES: dict[str, dict[str, Any]] = {"default": sqlite_in(DATA_DIR)}
else:
    DATABASES = {"default": env.postgres("DATABASE_URL")}
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
    DATABASES["default"]["OPTIONS"] = DATABASES["default"].get("OPTIONS", {}) | {
        "options": "-c idle_in_transaction_session_timeout=5000 -c lock_timeout=5000"
        " -c statement_timeout=15000",
        # Forked queue workers cannot share a pool's threads: run_worker turns it off.
        **({"pool": {"min_size": 1, "max_size": 12, "timeout": 10}} if DATABASE_POOL else {}),
    }

# --- counters shared by every process: rate limits ---------------------------------------------
REDIS_URL = env.str("REDIS_URL", default="")
CACHES = {
    "default": (
        {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}
        if REDIS_URL
        else {"BACKEND": "accounts.counters.DatabaseCounters"}
    ),
    "rates": (
        {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}
        if REDIS_URL
        else {"BACKEND": "accounts.counters.RateCounters"}
    ),
    # django-q2 keeps lists about itself in a cache; nothing here reads them.
    "queue": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"},
}
RATELIMIT_USE_CACHE = "rates"

# --- limits ------------------------------------------------------------------------------------
RATE_LIMITS = env.rates("RATE_LIMITS", fixed.RATE_LIMITS)

# --- people and keys ---------------------------------------------------------------------------
AUTH_USER_MODEL = "accounts.User"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
LOGIN_URL = "accounts:log_in"
LOGIN_REDIRECT_URL, LOGOUT_REDIRECT_URL = "home", "accounts:log_in"
JWT_ACCESS_TOKEN_LIFETIME = timedelta(
    minutes=env.int("JWT_ACCESS_TOKEN_EXPIRE_MINUTES", default=30)
)
JWT_REFRESH_TOKEN_LIFETIME = timedelta(days=env.int("JWT_REFRESH_TOKEN_EXPIRE_DAYS", default=7))
# A second factor before the admin opens. Off on one's own machine; per user: a flag in the admin.
STAFF_SECOND_FACTOR = env.bool("STAFF_SECOND_FACTOR", default=not LOCAL)
# Browsers allow passkeys without TLS only on localhost.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = LOCAL
BOOTSTRAP_EMAIL = env.str("ACE_BOOTSTRAP_EMAIL", default="")
BOOTSTRAP_PASSWORD = env.str("ACE_BOOTSTRAP_PASSWORD", default="")
BOOTSTRAP_API_KEY = env.str("ACE_BOOTSTRAP_API_KEY", default="")

# --- e-mail --------------------------------------------------------------------------------------
EMAIL_URL = env.str("EMAIL_URL", default="consolemail://")
vars().update(env.mail("EMAIL_URL", EMAIL_URL))
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.str("EMAIL_FROM", default="ACE Platform <ace@localhost>")
# `mandatory` needs real mail; with the console, nobody could log in before reading the log.
EMAIL_VERIFICATION = env.choice(
    "EMAIL_VERIFICATION",
    {"none", "optional", "mandatory"},
    default="optional" if EMAIL_URL == "consolemail://" else "mandatory",
)

# --- the loop ----------------------------------------------------------------------------------
EVOLUTION_OUTCOME_THRESHOLD = env.int("EVOLUTION_OUTCOME_THRESHOLD", default=5)
EVOLUTION_TIME_THRESHOLD_HOURS = env.int("EVOLUTION_TIME_THRESHOLD_HOURS", default=24)
OPENAI_API_KEY = env.str("OPENAI_API_KEY", default="")
OPENAI_BASE_URL = env.address("OPENAI_BASE_URL")
ACE_ENGINE = env.choice(
    "ACE_ENGINE", {"openai", "rules"}, default="openai" if OPENAI_API_KEY else "rules"
)
ACE_REFLECTOR_MODEL = env.str("ACE_REFLECTOR_MODEL", default="gpt-4o-mini")
ACE_CURATOR_MODEL = env.str("ACE_CURATOR_MODEL", default="gpt-4o-mini")
ACE_GENERATOR_MODEL = env.str("ACE_GENERATOR_MODEL", default="gpt-4o-mini")
# Empty: near-duplicate bullets are found by spelling; else by what this model makes of them.
ACE_EMBEDDING_MODEL = env.str("ACE_EMBEDDING_MODEL", default="")
if ACE_ENGINE == "openai" and not OPENAI_API_KEY:
    raise ImproperlyConfigured("Set OPENAI_API_KEY, or set ACE_ENGINE=rules to run without a key.")
# Off: the orchestrator hands messages on as they are, and records and reports nothing.
ACE_ENABLED = env.bool("ACE_ENABLED", default=True)
LLM_DEADLINE_SECONDS = env.int("LLM_DEADLINE_SECONDS", default=120)
# Calls of one API key at a time, over all processes and hosts.
LLM_CALLS_PER_KEY = env.int("LLM_CALLS_PER_KEY", default=32)
# Reflections of one evolution at a time: ten outcomes in one turn, three such evolutions a key.
LLM_CONCURRENCY = min(10, LLM_CALLS_PER_KEY)
# US dollars in a day or month (UTC) on the operator's key; 0: no limit. Work waits, never fails.
COST_CAP_DAY_USD = env.dollars("COST_CAP_DAY_USD")
COST_CAP_USER_DAY_USD = env.dollars("COST_CAP_USER_DAY_USD")
COST_CAP_PLAYBOOK_DAY_USD = env.dollars("COST_CAP_PLAYBOOK_DAY_USD")
COST_CAP_USER_MONTH_USD = env.dollars("COST_CAP_USER_MONTH_USD")
COST_CAP_PLAYBOOK_MONTH_USD = env.dollars("COST_CAP_PLAYBOOK_MONTH_USD")
# The longest that a job may take: 15 minutes, and with slow models seven calls one after the other.
JOB_DEADLINE_SECONDS = max(15 * 60, 7 * LLM_DEADLINE_SECONDS + 60)
# One task at a time and no prefetch: the lease of a prefetched task starts before its work.
Q_CLUSTER = {
    "name": "ace",
    "orm": "default",
    "cache": "queue",
    "workers": env.int("WORKER_PROCESSES", default=2),
    "queue_limit": 1,
    "bulk": 1,
    "max_attempts": 1,
    "ack_failures": True,
    "timeout": JOB_DEADLINE_SECONDS + 60,
    "retry": JOB_DEADLINE_SECONDS + 120,
    "broker_class": "evolution.jobs.AnnouncingORM",
    "poll": 0,  # between two looks this broker waits itself
    "save_limit": -1,
    "catch_up": False,
    "label": "Queue",
}

# Hosts that users and OAuth clients may name although their addresses are not public.
PRIVATE_HOSTS = env.list("PRIVATE_HOSTS", default=[])
# Traces and notes of outcomes are blanked so many days after they fed an evolution; 0 keeps them.
TRACE_RETENTION_DAYS = env.seconds("TRACE_RETENTION_DAYS", default=180)

# --- billing, MCP ------------------------------------------------------------------------------
BILLING_ENABLED = env.bool("BILLING_ENABLED", default=False)
STRIPE_SECRET_KEY = env.str("STRIPE_SECRET_KEY", default="")
STRIPE_LIVE_MODE = "_live_" in STRIPE_SECRET_KEY
# Of events that come another way than to the endpoint of `billing_setup`, whose secret is a row.
STRIPE_WEBHOOK_SECRET = env.str("STRIPE_WEBHOOK_SECRET", default="")
STRIPE_API_BASE = API
if BILLING_ENABLED:
    vars().update(with_billing(key=STRIPE_SECRET_KEY, api_base=STRIPE_API_BASE))
MCP_SERVER_HOST = env.str("MCP_SERVER_HOST", default="127.0.0.1")
MCP_SERVER_PORT = env.port("MCP_SERVER_PORT", default=8001)

# --- apps that log in by browser (OAuth) ---------------------------------------------------------
# Offered where it works: over HTTPS, and on the machine itself.
OAUTH_ENABLED = env.bool("OAUTH_ENABLED", default=True)
PUBLIC_URL = env.origin("PUBLIC_URL")
# Clients may be known by an https address of theirs: needs a way out to the internet.
OAUTH_CLIENT_DOCUMENTS = env.bool("OAUTH_CLIENT_DOCUMENTS", default=True)
# Schemes of apps such as `cursor` that may be redirected to, beside https and loopback http.
OAUTH_APP_SCHEMES = env.list("OAUTH_APP_SCHEMES", default=[])

# --- browsers ----------------------------------------------------------------------------------
CORS_ALLOWED_ORIGINS = env.list("CORS_ALLOWED_ORIGINS", default=[])
CORS_URLS_REGEX = r"^/api/"
CORS_ALLOW_HEADERS = (*default_headers, "idempotency-key")
CORS_EXPOSE_HEADERS = ("Idempotency-Replayed", "Retry-After", "X-Request-ID")
CSRF_FAILURE_VIEW = "config.views.csrf_failure"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
HTTPS = env.bool("HTTPS", default=not LOCAL and not DEBUG)
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    # A year, as browsers' preload lists ask for; without subdomains, which may speak plain HTTP.
    SECURE_HSTS_SECONDS = 31_536_000
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
    # A proxy that changes the Host header sets PUBLIC_URL to what browsers see.
    CSRF_TRUSTED_ORIGINS = [PUBLIC_URL] if PUBLIC_URL else []

# --- language, time, static files, logs --------------------------------------------------------
LANGUAGE_CODE, TIME_ZONE, USE_TZ = "en-gb", "UTC", True
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = None if LOCAL else BASE_DIR / "staticfiles"
# Local: served straight from the source folders, so that a first start needs no build step.
WHITENOISE_USE_FINDERS = LOCAL
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if LOCAL
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
LOG_LEVEL = env.choice(
    "LOG_LEVEL", {"debug", "info", "warning", "error", "critical"}, default="info"
).upper()
# Lines for a person at a terminal; one JSON object a line for a log collector.
LOGGING = logging_of(LOG_LEVEL, "lines" if LOCAL else "json", texts=DEBUG)
# Who may read /metrics; without it nothing is timed, and the address does not exist.
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")
if METRICS_TOKEN:
    share_figures(DATA_DIR / "metrics" if LOCAL else Path(gettempdir()) / "ace-metrics")
SENTRY_DSN = env.str("SENTRY_DSN", default="")
OTEL_EXPORTER_OTLP_ENDPOINT = env.str("OTEL_EXPORTER_OTLP_ENDPOINT", default="")
OTEL_CAPTURE_CONTENT = env.bool("OTEL_CAPTURE_CONTENT", default=False)
