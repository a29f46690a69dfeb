"""Settings that are ours and not an operator's: nothing here reads the environment."""

from datetime import timedelta
from typing import Any

# --- applications ------------------------------------------------------------------------------
INSTALLED_APPS = [
    "config.staff_app.StaffAdmin",
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
    "allauth.usersessions",
    "django_q",
    # Before accounts, whose admin replaces its own.
    "oauth2_provider",
    "accounts",
    "billing",
    "playbooks",
    "evolution",
    "mcp_bridge",
    "config",
]
MIDDLEWARE = [
    "config.middleware.RequestId",
    "config.compression.Compression",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "csp.middleware.CSPMiddleware",
    "config.middleware.BodyLimit",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "accounts.middleware.SecondFactorGate",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "config.middleware.FragmentLogin",
    "config.middleware.PageErrors",
]

# --- limits of size, in bytes -----------------------------------------------------------------
# 100 KiB is about 25,000 tokens: an agent reads the whole text before a task.
MAX_PLAYBOOK_BYTES = 100 * 1024
# A report. A trace feeds one prompt of a reflection, so it is short; agents cut it themselves.
MAX_TRACE_BYTES, MAX_NOTES_BYTES, MAX_TASK_BYTES = 10 * 1024, 2 * 1024, 4 * 1024
# One message of a session, and a whole session: messages, bytes.
MAX_MESSAGE_BYTES, MAX_SESSION_MESSAGES, MAX_SESSION_BYTES = 32 * 1024, 1000, 2 * 1024 * 1024
# The body of a request: the largest import with room for its JSON.
MAX_BODY_BYTES = DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
# Answers that one web process streams to playgrounds at a time; each holds two threads.
PLAYGROUND_STREAMS = 16
# Texts that one key or person may teach one playbook in a day; what is over waits for review.
SOURCE_CHANGES_PER_DAY = 60
# As django-ratelimit writes them: a count for s, m, h or d. RATE_LIMITS in the environment
# replaces single ones.
RATE_LIMITS = {
    "report_outcome": "100/h",  # per user
    "open_session": "300/h",  # per user
    "ask_playground": "120/h",  # per user
    "trigger_evolution": "10/h",  # per playbook
    "log_in": "5/m",  # per address
    "register": "20/h",  # per address
    "register_client": "60/h",  # per address
    "oauth_token": "120/m",  # per address
    "try_llm_key": "20/h",  # per user
    "send_mail": "20/h",  # per address, and per user
}

# --- jobs --------------------------------------------------------------------------------------
# A job whose worker is silent for a lease goes to another worker. Four heartbeats a lease: three
# may be lost to a slow database before a living worker loses its job.
JOB_LEASE_SECONDS, JOB_HEARTBEAT_SECONDS = 60, 15
# How often workers look for jobs whose lease is over, and for those that wait for a time.
JOB_SWEEP_SECONDS = 5

# --- billing -----------------------------------------------------------------------------------
# How long a plan stays after a payment has failed: Stripe's retries take about a week.
BILLING_GRACE_DAYS = 7

# --- language ----------------------------------------------------------------------------------
FORMAT_MODULE_PATH = "config.formats"

# --- people ------------------------------------------------------------------------------------
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
# allauth brings the second factor, the check before something sensitive, and the list of sessions.
# Passwords, e-mails, limits and delays are accounts/services, for every door alike.
ACCOUNT_ADAPTER, MFA_ADAPTER = "accounts.adapters.AccountAdapter", "accounts.adapters.FactorAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD, ACCOUNT_LOGIN_METHODS = None, {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_RATE_LIMITS = MFA_RATE_LIMITS = False
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_TOTP_ISSUER, MFA_TOTP_TOLERANCE = "ACE Platform", 1
MFA_ALLOW_UNVERIFIED_EMAIL = True
PASSWORD_RESET_TIMEOUT = 3 * 3600
MFA_FORMS = {
    "authenticate": "accounts.adapters.CodeForm",
    "reauthenticate": "accounts.adapters.ConfirmCodeForm",
}

# --- keys ----------------------------------------------------------------------------------------
# Of a new API key unless its maker says.
API_KEY_LIFETIME = timedelta(days=90)
# Called with `user` in the transaction that makes one of their API keys; raises to refuse it.
KEY_ALLOWANCE = "billing.allowances.refuse_more_keys"

# --- apps that people let in (accounts/oauth) ----------------------------------------------------
OAUTH2_PROVIDER_APPLICATION_MODEL = "oauth2_provider.Application"
OAUTH2_PROVIDER: dict[str, Any] = {
    "OAUTH2_BACKEND_CLASS": "accounts.oauth.grants.Core",
    "OAUTH2_SERVER_CLASS": "oauthlib.oauth2.WebApplicationServer",
    "OAUTH2_VALIDATOR_CLASS": "accounts.oauth.grants.Rules",
    "ACCESS_TOKEN_GENERATOR": "accounts.oauth.wording.make_access_token",
    "REFRESH_TOKEN_GENERATOR": "accounts.oauth.wording.make_refresh_token",
    "SCOPES": {name: name for name in ("read", "write", "evolve")},
    # What a client gets that asks for nothing in particular: nothing that costs money.
    "DEFAULT_SCOPES": ["read", "write"],
    "AUTHORIZATION_CODE_EXPIRE_SECONDS": 60,
    # A stolen access token is of use for 15 minutes; an app unused for 30 days asks again.
    "ACCESS_TOKEN_EXPIRE_SECONDS": 15 * 60,
    "REFRESH_TOKEN_EXPIRE_SECONDS": 30 * 86_400,
    # Read by its deploy check only; accounts/oauth/redirects.py decides, and allows loopback http.
    "ALLOWED_REDIRECT_URI_SCHEMES": ["https"],
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    # RFC 8252: a program on the person's machine listens on whatever port is free.
    "ALLOW_LOCALHOST_LOOPBACK": True,
    **{
        f"COMPLIANT_BCP_RFC9700_{rule}": True
        for rule in (
            *("IMPLICIT_GRANT", "PASSWORD_GRANT", "PKCE_METHOD", "ACCESS_TOKEN_TRANSPORT"),
            *("AUTHZ_RESPONSE_ISS", "TOKEN_STORAGE", "REFRESH_TOKEN", "REDIRECT_URI_MATCHING"),
            *("PKCE_REQUIRED", "REDIRECT_URI_SCHEME"),
        )
    },
    "APPLICATION_ADMIN_CLASS": "accounts.oauth_admin.ClientAdmin",
    "ACCESS_TOKEN_ADMIN_CLASS": "accounts.oauth_admin.AccessTokenAdmin",
    "REFRESH_TOKEN_ADMIN_CLASS": "accounts.oauth_admin.RefreshTokenAdmin",
    "GRANT_ADMIN_CLASS": "accounts.oauth_admin.Hidden",
    "ID_TOKEN_ADMIN_CLASS": "accounts.oauth_admin.Hidden",
}

# --- REST --------------------------------------------------------------------------------------
REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.authentication.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["accounts.authentication.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["config.api.StrictJSONParser"],
    "DEFAULT_PAGINATION_CLASS": "config.api.CursorPages",
    "DEFAULT_SCHEMA_CLASS": "config.schema.AceSchema",
    "EXCEPTION_HANDLER": "config.api.handle_error",
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,  # `?format=` is an export's own parameter
}
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
    "ENUM_NAME_OVERRIDES": {
        "PlaybookStatus": "playbooks.models.Playbook.Status",
        "BulletStatus": "playbooks.models.Bullet.Status",
        "DeltaStatus": "playbooks.models.Delta.Status",
        "ApiKeyState": ["active", "revoked", "expired"],
        "HeldTextState": "playbooks.models.HeldText.State",
        "OutcomeStatus": "evolution.models.Outcome.Status",
        "EvolutionStatus": "evolution.models.EvolutionJob.Status",
        "SubscriptionStatus": "billing.models.BillingAccount.Status",
        "SessionStatus": "evolution.models.AgentSession.Status",
        "SessionSource": "evolution.models.AgentSession.Source",
        "MessageRole": "evolution.models.SessionMessage.Role",
        "OutcomeSignal": "evolution.models.Outcome.Signal",
        "EvolutionTrigger": "evolution.models.EvolutionJob.Trigger",
        "EvolutionPhase": "evolution.models.EvolutionJob.Phase",
        "PlaybookSource": "playbooks.models.Playbook.Source",
        "ReviewPolicy": "playbooks.held.ReviewPolicy",
        "VersionReason": "playbooks.models.Version.Reason",
        "DeltaType": "playbooks.models.Delta.Type",
        "VoteTag": "playbooks.models.Vote.Tag",
        "MarkKind": ["same", "removed", "added"],
        "KeyScope": "accounts.shapes.SCOPES",
        "UsagePeriod": ["day", "week", "month"],
        "UsageGroup": ["playbook", "model", "operation", "key"],
        "QuotaResource": "billing.models.Resource",
        "QuotaState": ["open", "near", "reached"],
        "BudgetState": ["ok", "warning", "reached"],
    },
}

# What `check --deploy` would say for good, and why it stays as it is.
SILENCED_SYSTEM_CHECKS = [
    "security.W005",  # HSTS for subdomains would lock plain-HTTP sibling hosts
    "security.W021",  # … and so would the preload list
    "oauth2_provider.W008",  # programs on one's own machine get their answer at http://127.0.0.1
]

# --- browsers ----------------------------------------------------------------------------------
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}
