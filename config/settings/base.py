"""All settings: constants first, then those read from the environment and `.env`.

`.env.example` documents every variable; tests/config/test_env_example.py compares both.
"""

import sys
import tomllib
from datetime import timedelta
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from corsheaders.defaults import default_headers
from django.core.exceptions import ImproperlyConfigured

from config.observability.logging import logging_config
from config.settings.billing import STRIPE_API, billing_settings
from config.settings.content_security_policy import CONTENT_SECURITY_POLICY
from config.settings.environment import Environment, enable_multiprocess_metrics, sqlite_database
from evolution.engine.adaptive_limits import longest_deadline

# ===== Constants ==================================================================================
BASE_DIR = Path(__file__).resolve().parent.parent.parent
# The release, in errors and traces; equal to pyproject.toml's.
VERSION = "0.1.0"

# --- applications ------------------------------------------------------------------------------
INSTALLED_APPS = [
    "config.admin_site.apps.AdminSiteConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "corsheaders",
    "django_htmx",
    "template_partials",
    "csp",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "accounts.browser_sessions.app.BrowserSessionsConfig",
    "django_q",
    # Before accounts, whose admin replaces its own.
    "oauth2_provider",
    "core",
    "accounts",
    "billing",
    "playbooks",
    "evolution",
    "mcp_bridge",
    "config",
]
MIDDLEWARE = [
    "config.web.middleware.RequestIdMiddleware",
    "config.web.compression.CompressionMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "config.web.middleware.BodyLimitMiddleware",
    "config.web.middleware.ProbeMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "accounts.mfa.middleware.RequireSecondFactorMiddleware",
    "config.web.middleware.RequestLimitMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "config.web.middleware.HtmxLoginMiddleware",
    "config.web.middleware.ErrorPageMiddleware",
    "config.web.view_as.ViewAsMiddleware",
]

# --- limits of size, in bytes -----------------------------------------------------------------
# 100 KiB is about 25,000 tokens, which an agent reads before a task.
MAX_PLAYBOOK_BYTES = 100 * 1024
# A report. The trace goes into one prompt of a reflection, so agents send an excerpt.
MAX_TRACE_BYTES, MAX_NOTES_BYTES, MAX_TASK_BYTES = 10 * 1024, 2 * 1024, 4 * 1024
# One message of a session, and a whole session: messages, bytes.
MAX_MESSAGE_BYTES, MAX_SESSION_MESSAGES, MAX_SESSION_BYTES = 32 * 1024, 1000, 2 * 1024 * 1024
# The body of a request: the largest import with room for its JSON.
MAX_BODY_BYTES = DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
# Playground answers that one web process streams at a time; each takes two threads.
PLAYGROUND_STREAMS = 16
# Texts that one key or user may add to one playbook in a day; the rest waits for review.
SOURCE_CHANGES_PER_DAY = 60
# Texts that one key or app may import in a day, over all playbooks; the rest waits for review.
SOURCE_IMPORTS_PER_DAY = 300
# In the notation of django-ratelimit. RATE_LIMITS in the environment replaces single entries.
RATE_LIMITS = {
    "requests": "1200/m",  # per user and web process: REST, MCP and pages
    "create_playbook": "120/h",  # per user: created, imported and cloned ones
    "report_outcome": "100/h",  # per user; what is over it waits for an evolution
    "report_outcome_over": "5000/h",  # per user; what is over both is refused
    "open_session": "300/h",  # per user
    "ask_playground": "120/h",  # per user
    "trigger_evolution": "10/h",  # per playbook
    "log_in": "5/m",  # per address
    "register": "20/h",  # per address
    "register_client": "60/h",  # per address
    "oauth_token": "120/m",  # per address
    "try_llm_key": "20/h",  # per user
    "test_webhook": "20/h",  # per user
    "send_mail": "20/h",  # per address, and per user
}

# --- jobs --------------------------------------------------------------------------------------
# A job whose worker is silent for a lease goes to another worker. With four heartbeats a lease,
# three may be lost to a slow database before a living worker loses its job.
JOB_LEASE_SECONDS, JOB_HEARTBEAT_SECONDS = 60, 15
# How often workers look for jobs with an expired lease or a due next attempt.
JOB_SWEEP_SECONDS = 5

# --- evidence ----------------------------------------------------------------------------------
# Outcomes of a trial, the chance that it takes a version back without cause, and the outcomes in 30
# days that a playbook needs to have trials.
TRIAL_OUTCOMES, TRIAL_ERROR, TRIAL_MIN_TRAFFIC = 200, 0.10, 20
# How long a new version waits for agents to answer the cases that check it.
GATE_WAIT_HOURS = 24

# --- billing -----------------------------------------------------------------------------------
# How long a plan stays after a failed payment: Stripe retries for about a week.
BILLING_GRACE_DAYS = 7

# --- language ----------------------------------------------------------------------------------
FORMAT_MODULE_PATH = "config.web.formats"

# --- users -------------------------------------------------------------------------------------
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
# allauth provides second factors, reauthentication and the session list. Passwords, e-mail, rate
# limits and login delays are in accounts/services, for pages and REST alike.
ACCOUNT_ADAPTER, MFA_ADAPTER = (
    "accounts.web.allauth_adapters.AccountAdapter",
    "accounts.web.allauth_adapters.MfaAdapter",
)
ACCOUNT_USER_MODEL_USERNAME_FIELD, ACCOUNT_LOGIN_METHODS = None, {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_RATE_LIMITS = MFA_RATE_LIMITS = False
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_TOTP_ISSUER, MFA_TOTP_TOLERANCE = "ACE Platform", 1
MFA_ALLOW_UNVERIFIED_EMAIL = True
PASSWORD_RESET_TIMEOUT = 3 * 3600
MFA_FORMS = {
    "authenticate": "accounts.web.allauth_adapters.MfaCodeForm",
    "reauthenticate": "accounts.web.allauth_adapters.MfaReauthenticateForm",
}

# --- keys ----------------------------------------------------------------------------------------
# Of a new API key, unless its creator chooses another.
API_KEY_LIFETIME = timedelta(days=90)

# --- OAuth server (accounts/oauth) ----------------------------------------------------------------
OAUTH2_PROVIDER_APPLICATION_MODEL = "oauth2_provider.Application"
OAUTH2_PROVIDER: dict[str, Any] = {
    "OAUTH2_BACKEND_CLASS": "accounts.oauth.validators.OAuthBackend",
    "OAUTH2_SERVER_CLASS": "oauthlib.oauth2.WebApplicationServer",
    "OAUTH2_VALIDATOR_CLASS": "accounts.oauth.validators.OAuthValidator",
    "ACCESS_TOKEN_GENERATOR": "accounts.oauth.connections.make_access_token",
    "REFRESH_TOKEN_GENERATOR": "accounts.oauth.connections.make_refresh_token",
    "SCOPES": {name: name for name in ("read", "report", "write", "evolve")},
    # For clients that request no scope: nothing that edits or costs money.
    "DEFAULT_SCOPES": ["read", "report"],
    "AUTHORIZATION_CODE_EXPIRE_SECONDS": 60,
    # A stolen access token works for 15 minutes; an app unused for 30 days needs a new login.
    "ACCESS_TOKEN_EXPIRE_SECONDS": 15 * 60,
    "REFRESH_TOKEN_EXPIRE_SECONDS": 30 * 86_400,
    # Read only by the toolkit's deploy check; oauth/redirect_uris.py also allows loopback.
    "ALLOWED_REDIRECT_URI_SCHEMES": ["https"],
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    # RFC 8252: a native app listens on any free port.
    "ALLOW_LOCALHOST_LOOPBACK": True,
    **{
        f"COMPLIANT_BCP_RFC9700_{rule}": True
        for rule in (
            *("IMPLICIT_GRANT", "PASSWORD_GRANT", "PKCE_METHOD", "ACCESS_TOKEN_TRANSPORT"),
            *("AUTHZ_RESPONSE_ISS", "TOKEN_STORAGE", "REFRESH_TOKEN", "REDIRECT_URI_MATCHING"),
            *("PKCE_REQUIRED", "REDIRECT_URI_SCHEME"),
        )
    },
    "APPLICATION_ADMIN_CLASS": "accounts.admin.oauth.ClientAdmin",
    "ACCESS_TOKEN_ADMIN_CLASS": "accounts.admin.oauth.HiddenAdmin",
    "REFRESH_TOKEN_ADMIN_CLASS": "accounts.admin.oauth.HiddenAdmin",
    "GRANT_ADMIN_CLASS": "accounts.admin.oauth.HiddenAdmin",
    "ID_TOKEN_ADMIN_CLASS": "accounts.admin.oauth.HiddenAdmin",
}

# --- REST --------------------------------------------------------------------------------------
REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.api.authentication.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["core.rest.permissions.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["core.rest.parsers.StrictJSONParser"],
    "DEFAULT_PAGINATION_CLASS": "core.rest.pagination.StandardCursorPagination",
    "DEFAULT_SCHEMA_CLASS": "config.docs_site.openapi.ApiSchema",
    "EXCEPTION_HANDLER": "core.rest.exceptions.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,  # `?format=` is an export's own parameter
}
OPENAPI = tomllib.loads((BASE_DIR / "config/docs_site/openapi.toml").read_text(encoding="utf-8"))
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "ACE Platform",
    "DESCRIPTION": "Playbooks that learn from what your agents report.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": [],
    "SERVE_AUTHENTICATION": [],
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": OPENAPI["enum_names"],
}

# Warnings of `check --deploy` that do not apply, with the reason.
SILENCED_SYSTEM_CHECKS = [
    "security.W005",  # HSTS for subdomains would break sibling hosts on plain HTTP
    "security.W021",  # so would the preload list
    "oauth2_provider.W008",  # native apps receive the redirect at http://127.0.0.1
]

# ===== Read from the environment ==================================================================
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
# The first one encrypts, all decrypt (see `manage.py rotate_encryption`).
FIELD_ENCRYPTION_KEYS = env.list("FIELD_ENCRYPTION_KEYS", default=[])
if LOCAL or EMBEDDED:
    try:
        DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(f"Set ACE_DATA_DIR to a directory of yours: {error}.") from None
# Secrets that are not set are generated in this folder at the first start, for all processes.
SECRETS_DIR = env.str("ACE_SECRETS_DIR", default=str(DATA_DIR) if LOCAL else "")
if SECRETS_DIR:
    SECRET_KEY = SECRET_KEY or env.secret_file("secret_key", SECRETS_DIR)
    JWT_SECRET_KEY = JWT_SECRET_KEY or env.secret_file("jwt_secret_key", SECRETS_DIR)
    FIELD_ENCRYPTION_KEYS = FIELD_ENCRYPTION_KEYS or [env.secret_file("field_key", SECRETS_DIR)]
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
                "config.web.context_processors.site",
            ],
        },
    }
]

# --- database ----------------------------------------------------------------------------------
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Of these two commands and of servers such as uvicorn. Others need one connection, and a pool is
# slow to notice a restart.
HAS_POOL = Path(sys.argv[0]).name != "manage.py" or sys.argv[1:2] in (["run_mcp"], ["runserver"])
if EMBEDDED:
    DATABASES: dict[str, dict[str, Any]] = {"default": sqlite_database(DATA_DIR)}
else:
    DATABASES = {"default": env.postgres("DATABASE_URL") | {"ENGINE": "core.sql.postgres"}}
    if not HAS_POOL:  # with one, the engine checks a connection without asking the server
        DATABASES["default"] |= {"CONN_HEALTH_CHECKS": True, "CONN_MAX_AGE": 60}
    DATABASES["default"]["OPTIONS"] = DATABASES["default"].get("OPTIONS", {}) | {
        "options": "-c idle_in_transaction_session_timeout=5000 -c lock_timeout=5000"
        " -c statement_timeout=15000"
        # Prepared statements have ids for values only: one plan fits all, and is made once.
        " -c plan_cache_mode=force_generic_plan",
        **({"pool": {"min_size": 1, "max_size": 12, "timeout": 10}} if HAS_POOL else {}),
    }

# --- counters shared by every process: rate limits ---------------------------------------------
REDIS_URL = env.str("REDIS_URL", default="")
_shared, _rates = (
    ("django.core.cache.backends.redis.RedisCache", "RedisRateLimitCache")
    if REDIS_URL
    else ("core.ratelimit.cache_backends.DatabaseCounterCache", "RateLimitCache")
)
CACHES = {
    "default": {"BACKEND": _shared, "LOCATION": REDIS_URL},
    "rates": {"BACKEND": f"core.ratelimit.cache_backends.{_rates}", "LOCATION": REDIS_URL},
    # django-q2 keeps statistics in a cache, which nothing reads.
    "queue": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"},
}
RATELIMIT_USE_CACHE = "rates"

# --- limits ------------------------------------------------------------------------------------
RATE_LIMITS = env.rates("RATE_LIMITS", RATE_LIMITS)

# --- people and keys ---------------------------------------------------------------------------
AUTH_USER_MODEL = "accounts.User"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
LOGIN_URL = "accounts:log_in"
LOGIN_REDIRECT_URL, LOGOUT_REDIRECT_URL = "home", "accounts:log_in"
JWT_ACCESS_TOKEN_LIFETIME = timedelta(
    minutes=env.int("JWT_ACCESS_TOKEN_EXPIRE_MINUTES", default=30)
)
API_KEY_MAX_LIFETIME = timedelta(days=env.int("API_KEY_MAX_DAYS", default=365))
JWT_REFRESH_TOKEN_LIFETIME = timedelta(days=env.int("JWT_REFRESH_TOKEN_EXPIRE_DAYS", default=7))
# Whether the admin requires a second factor. Single users: a flag in the admin.
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
# `mandatory` needs real e-mail: with the console backend the link is only in the log.
EMAIL_VERIFICATION = env.choice(
    "EMAIL_VERIFICATION",
    {"none", "optional", "mandatory"},
    default="optional" if EMAIL_URL == "consolemail://" else "mandatory",
)

# --- evolution and models ------------------------------------------------------------------------
EVOLUTION_OUTCOME_THRESHOLD = env.int("EVOLUTION_OUTCOME_THRESHOLD", default=5)
EVOLUTION_TIME_THRESHOLD_HOURS = env.int("EVOLUTION_TIME_THRESHOLD_HOURS", default=24)
# What the platform may spend on one check of a new version by cases.
GATE_MAX_USD = env.dollars("GATE_MAX_USD", default="0.50")
OPENAI_API_KEY = env.str("OPENAI_API_KEY", default="")
OPENAI_BASE_URL = env.address("OPENAI_BASE_URL")
ACE_ENGINE = env.choice(
    "ACE_ENGINE",
    {"openai", "rules"},
    default="openai" if OPENAI_API_KEY or OPENAI_BASE_URL else "rules",
)
ACE_REFLECTOR_MODEL = env.str("ACE_REFLECTOR_MODEL", default="gpt-4o-mini")
ACE_CURATOR_MODEL = env.str("ACE_CURATOR_MODEL", default="gpt-4o-mini")
ACE_GENERATOR_MODEL = env.str("ACE_GENERATOR_MODEL", default="gpt-4o-mini")
# When near-duplicates are looked for: after 20 new bullets or nearly full, or in each evolution.
ACE_REFINEMENT = env.choice("ACE_REFINEMENT", {"lazy", "always"}, default="lazy")
# JSON by role: temperature, seed, caps and context of local models; see docs/LOCAL_MODELS.md.
ACE_MODEL_OPTIONS = env.model_options("ACE_MODEL_OPTIONS")
if ACE_ENGINE == "openai" and not (OPENAI_API_KEY or OPENAI_BASE_URL):
    raise ImproperlyConfigured(
        "Set OPENAI_API_KEY, or the OPENAI_BASE_URL of a local server, or set ACE_ENGINE=rules to "
        "run without a model."
    )
LLM_DEADLINE_SECONDS = env.int("LLM_DEADLINE_SECONDS", default=120)
# Concurrent calls of one API key, over all processes and hosts.
LLM_CALLS_PER_KEY = env.int("LLM_CALLS_PER_KEY", default=32)
# Concurrent reflections of one evolution: three evolutions of ten outcomes share a key.
LLM_CONCURRENCY = min(10, LLM_CALLS_PER_KEY)
# The longest run of a job: seven sequential calls of a slow model.
JOB_DEADLINE_SECONDS = 7 * longest_deadline(LLM_DEADLINE_SECONDS) + 60
# Evolutions of a worker at a time, and as many again of accounts with an LLM endpoint of their own:
# one that hangs takes no slot from the others.
WORKER_SLOTS = env.int("WORKER_SLOTS", default=8)
# Evolutions of one account at a time, over all workers.
EVOLUTIONS_PER_OWNER = env.int("EVOLUTIONS_PER_OWNER", default=2)
# django-q2 stores the messages; workers read them (evolution/jobs/message_queue.py).
Q_CLUSTER = {
    "name": "ace",
    "orm": "default",
    "cache": "queue",
    "timeout": 60,
    "retry": 120,
    "label": "Queue",
}

# Hosts with private addresses that users and OAuth clients may use.
PRIVATE_HOSTS = env.list("PRIVATE_HOSTS", default=[])
# Days after which traces and notes of used outcomes are deleted; 0: never.
TRACE_RETENTION_DAYS = env.seconds("TRACE_RETENTION_DAYS", default=180)

# --- billing, MCP ------------------------------------------------------------------------------
BILLING_ENABLED = env.bool("BILLING_ENABLED", default=False)
STRIPE_SECRET_KEY = env.str("STRIPE_SECRET_KEY", default="")
STRIPE_LIVE_MODE = "_live_" in STRIPE_SECRET_KEY
# For events of `stripe listen`; the secret of the `billing_setup` webhook is in the database.
STRIPE_WEBHOOK_SECRET = env.str("STRIPE_WEBHOOK_SECRET", default="")
# What the checkout asks for: `tax` (computed by Stripe Tax), `address`, `tax_id`.
STRIPE_CHECKOUT = env.list("STRIPE_CHECKOUT", default=[])
STRIPE_API_BASE = STRIPE_API
if BILLING_ENABLED:
    vars().update(
        billing_settings(
            key=STRIPE_SECRET_KEY,
            api_base=STRIPE_API_BASE,
            installed_apps=INSTALLED_APPS,
            policy=CONTENT_SECURITY_POLICY["DIRECTIVES"],
        )
    )
MCP_SERVER_HOST = env.str("MCP_SERVER_HOST", default="127.0.0.1")
MCP_SERVER_PORT = env.port("MCP_SERVER_PORT", default=8001)

# --- OAuth ---------------------------------------------------------------------------------------
# Available over HTTPS and on localhost.
OAUTH_ENABLED = env.bool("OAUTH_ENABLED", default=True)
PUBLIC_URL = env.origin("PUBLIC_URL")
# Whether anybody may look at the account of `manage.py demo`, from the landing page.
DEMO_LOGIN = env.bool("DEMO_LOGIN", default=False)
# Client ID documents are fetched over https, which needs internet access.
OAUTH_CLIENT_DOCUMENTS = env.bool("OAUTH_CLIENT_DOCUMENTS", default=True)
# Redirect schemes of apps, such as `cursor`, besides https and loopback http.
OAUTH_APP_SCHEMES = env.list("OAUTH_APP_SCHEMES", default=[])

# --- browsers ----------------------------------------------------------------------------------
CORS_ALLOWED_ORIGINS = env.list("CORS_ALLOWED_ORIGINS", default=[])
CORS_URLS_REGEX = r"^/api/"
CORS_ALLOW_HEADERS = (*default_headers, "idempotency-key")
CORS_EXPOSE_HEADERS = (
    *("Idempotency-Replayed", "Retry-After", "X-Request-ID"),
    *("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"),
)
CSRF_FAILURE_VIEW = "config.web.views.csrf_failure"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_ENGINE = "accounts.browser_sessions.store"
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
# Probes and scrapes ask a process by its address over plain HTTP; see ProbeMiddleware.
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]
HTTPS = env.bool("HTTPS", default=not LOCAL and not DEBUG)
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    # A year, without subdomains, which may use plain HTTP.
    SECURE_HSTS_SECONDS = 31_536_000
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
    # Behind a proxy that changes the Host header, PUBLIC_URL is what browsers see.
    CSRF_TRUSTED_ORIGINS = [PUBLIC_URL] if PUBLIC_URL else []

# --- language, time, static files, logs --------------------------------------------------------
LANGUAGE_CODE, TIME_ZONE, USE_TZ = "en-gb", "UTC", True
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = None if LOCAL else BASE_DIR / "staticfiles"
# Local runs serve the source folders, without a build step.
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
# Text for a terminal; one JSON object per line for a log collector.
LOGGING = logging_config(LOG_LEVEL, "lines" if LOCAL else "json", texts=DEBUG)
# Bearer token of /metrics; without it nothing is measured and /metrics is 404.
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")
if METRICS_TOKEN:
    # With systemd each process has a /tmp of its own; the recipe sets ACE_DATA_DIR.
    shared = LOCAL or env.str("ACE_DATA_DIR", default="")
    enable_multiprocess_metrics(
        DATA_DIR / "metrics" if shared else Path(gettempdir()) / "ace-metrics"
    )
SENTRY_DSN = env.str("SENTRY_DSN", default="")
OTEL_EXPORTER_OTLP_ENDPOINT = env.str("OTEL_EXPORTER_OTLP_ENDPOINT", default="")
OTEL_CAPTURE_CONTENT = env.bool("OTEL_CAPTURE_CONTENT", default=False)
