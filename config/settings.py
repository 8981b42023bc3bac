"""Countersign's settings, read once from the environment.

`.env.example` lists every variable; a missing or odd value stops the start with all faults named.
"""

from pathlib import Path

from config.env import Environment
from tools.ablation import GUARDS

BASE_DIR = Path(__file__).resolve().parent.parent
env = Environment()

# --- Identity of this deployment -------------------------------------------------------------
SECRET_KEY = env.text("COUNTERSIGN_SECRET_KEY")
DEBUG = env.flag("COUNTERSIGN_DEBUG", default=False)
DEMO = env.flag("COUNTERSIGN_DEMO", default=False)
PUBLIC_URL = env.url("COUNTERSIGN_PUBLIC_URL", "http://127.0.0.1:8000")
ALLOWED_HOSTS = env.words("COUNTERSIGN_ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
# Where `script/server` keeps its data; here only to know the keys of a demo again (config/safety.py).
DATA = env.text("COUNTERSIGN_DATA", ".data")
# Fernet keys, newest first: secrets at rest are written with the first and read with any.
ENCRYPTION_KEYS = env.words("COUNTERSIGN_ENCRYPTION_KEYS")
if not ENCRYPTION_KEYS:
    env.faults.append("COUNTERSIGN_ENCRYPTION_KEYS is not set")
# Ed25519 private key (32 bytes, base64) that signs the seals of the audit trail.
SEAL_KEY = env.text("COUNTERSIGN_SEAL_KEY")
# Public keys (base64) of retired seal keys, and a file that the newest seal is published to.
SEAL_PUBLIC_KEYS = env.words("COUNTERSIGN_SEAL_PUBLIC_KEYS")
SEAL_HEAD_FILE = env.text("COUNTERSIGN_SEAL_HEAD_FILE", "")
ERASURE_LIST_FILE = env.text("COUNTERSIGN_ERASURE_LIST_FILE", "")
# Where auditors' bundles lie until they are fetched, on a disk that web and workers share.
EXPORT_FOLDER = BASE_DIR / env.text("COUNTERSIGN_EXPORT_FOLDER", ".data/exports")
EXPORT_HOURS = env.integer("COUNTERSIGN_EXPORT_HOURS", 24, minimum=1)  # then they are deleted

# --- Stores -----------------------------------------------------------------------------------
DATABASES = {"default": env.database("DATABASE_URL")}
_DB_OPTIONS: dict[str, object] = {
    **env.database_options("DATABASE_URL"),
    "pool": {
        "min_size": 1,
        "max_size": env.integer("COUNTERSIGN_DB_POOL", 20, minimum=1),
        # Whoever gets no connection by then is told so, and does not wait for the usual half minute.
        "timeout": 5.0,
    },
}
# No transaction of ours waits for anything but the database. One that idles belongs to a process
# that stands still, and would make others wait for the rows it holds.
DB_IDLE_SECONDS = env.integer("COUNTERSIGN_DB_IDLE_SECONDS", 15)
if DB_IDLE_SECONDS:
    _idle = f"-c idle_in_transaction_session_timeout={DB_IDLE_SECONDS}s"
    _DB_OPTIONS["options"] = f"{_DB_OPTIONS.get('options', '')} {_idle}".strip()
DATABASES["default"]["OPTIONS"] = _DB_OPTIONS
REDIS_URL = env.text("REDIS_URL")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- The model --------------------------------------------------------------------------------
OPENAI_BASE_URL = env.url("OPENAI_BASE_URL", "http://127.0.0.1:8002/v1")
OPENAI_API_KEY = env.text("OPENAI_API_KEY", "no-key")
MODEL = env.text("COUNTERSIGN_MODEL", "countersign-rules")
# True when OPENAI_BASE_URL is the bundled rule-based stand-in: the widget says so in its footer.
MODEL_IS_STAND_IN = env.flag("COUNTERSIGN_MODEL_IS_STAND_IN", default=False)
MODEL_TIMEOUT = env.integer("COUNTERSIGN_MODEL_TIMEOUT", 25, minimum=1)  # seconds
MODEL_MAX_OUTPUT = env.integer("COUNTERSIGN_MODEL_MAX_OUTPUT", 1024, minimum=1)  # tokens
# Prices in millionths of a US dollar for a thousand tokens.
MODEL_PRICE_INPUT = env.integer("COUNTERSIGN_MODEL_PRICE_INPUT", 150)
MODEL_PRICE_OUTPUT = env.integer("COUNTERSIGN_MODEL_PRICE_OUTPUT", 600)

# --- Work -------------------------------------------------------------------------------------
SHOP_TIMEOUT = env.integer("COUNTERSIGN_SHOP_TIMEOUT", 8, minimum=1)  # seconds for one shop call
# Hosts inside our own network that shops' addresses may name, and those may be plain http.
INSIDE_HOSTS = env.words("COUNTERSIGN_INSIDE_HOSTS")
# Where closure e-mails go: smtp:// or smtps://, with user and password when needed. Empty: none.
SMTP_URL = env.text("COUNTERSIGN_SMTP_URL", "")
LEASE_SECONDS = env.integer("COUNTERSIGN_LEASE_SECONDS", 60, minimum=5)
if LEASE_SECONDS <= 2 * MODEL_TIMEOUT or LEASE_SECONDS <= 3 * SHOP_TIMEOUT:
    env.faults.append(
        "COUNTERSIGN_LEASE_SECONDS must be more than twice COUNTERSIGN_MODEL_TIMEOUT and three "
        "times COUNTERSIGN_SHOP_TIMEOUT: a step must end within its lease"
    )
# Guards taken away to see what breaks without them (tools/ablation.py).
ABLATE = env.words("COUNTERSIGN_ABLATE")
env.faults += (
    f"COUNTERSIGN_ABLATE: there is no guard {name!r}" for name in set(ABLATE) - set(GUARDS)
)
if ABLATE and not DEMO:
    env.faults.append("COUNTERSIGN_ABLATE is for the demo alone: nothing is safe with it")
SWEEP_SECONDS = env.integer("COUNTERSIGN_SWEEP_SECONDS", 5, minimum=1)
CELERY_BROKER_URL = REDIS_URL

# --- Telemetry --------------------------------------------------------------------------------
# OpenTelemetry's own variables, which its SDK reads for itself; here is only whether to begin at all.
# The collector is the operator's own, like the database: no rule for shops' addresses holds for it.
_OTLP = env.text("OTEL_EXPORTER_OTLP_ENDPOINT", "")
_OTLP_OFF = env.flag("OTEL_SDK_DISABLED", default=False)
TELEMETRY_TRACES = (
    bool(_OTLP or env.text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")) and not _OTLP_OFF
)
TELEMETRY_METRICS = (
    bool(_OTLP or env.text("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "")) and not _OTLP_OFF
)
TELEMETRY = TELEMETRY_TRACES or TELEMETRY_METRICS
TELEMETRY_CONTENT = env.flag("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", default=False)
if TELEMETRY and env.text("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf") != "http/protobuf":
    env.faults.append("OTEL_EXPORTER_OTLP_PROTOCOL: only http/protobuf is spoken here")

# --- Doors ------------------------------------------------------------------------------------
# Limits for one customer or one member of staff; those at once are counted in each web process.
API_READS_PER_MINUTE = env.integer("COUNTERSIGN_API_READS_PER_MINUTE", 600, minimum=1)
API_WRITES_PER_MINUTE = env.integer("COUNTERSIGN_API_WRITES_PER_MINUTE", 120, minimum=1)
API_REQUESTS_AT_ONCE = env.integer("COUNTERSIGN_API_REQUESTS_AT_ONCE", 4, minimum=1)
API_STREAMS_PER_PRINCIPAL = env.integer("COUNTERSIGN_API_STREAMS_PER_PRINCIPAL", 8, minimum=1)
# Seconds in which all of a request has to have arrived.
REQUEST_SECONDS = env.integer("COUNTERSIGN_REQUEST_SECONDS", 10, minimum=1)
# Whoever countersigns or changes settings needs an authenticator app's code for it.
APPROVERS_NEED_CODE = env.flag("COUNTERSIGN_APPROVERS_NEED_CODE", default=False)
# Approvals of money that one person may give in so many seconds, before a pause.
APPROVALS_IN_A_ROW = env.integer("COUNTERSIGN_APPROVALS_IN_A_ROW", 10, minimum=1)
APPROVALS_ROW_SECONDS = env.integer("COUNTERSIGN_APPROVALS_ROW_SECONDS", 300, minimum=1)
# With a token, /metrics needs it; without one, /metrics answers this machine only.
METRICS_TOKEN = env.text("COUNTERSIGN_METRICS_TOKEN", "")
# Seconds that a ready task may wait before /healthz/ready says no; 0: it only tells.
READY_MAX_LAG = env.integer("COUNTERSIGN_READY_MAX_LAG", 0)

# --- Django -----------------------------------------------------------------------------------
INSTALLED_APPS = [
    "daphne",
    "accounts.apps.AccountsConfig",
    "audit.apps.AuditConfig",
    "tools.apps.ToolsConfig",
    "approvals.apps.ApprovalsConfig",
    "agents.apps.AgentsConfig",
    "config.apps.ConsoleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "channels",
    "csp",
    "axes",
]
MIDDLEWARE = [
    "config.request_id.request_id",
    "config.health.probes",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
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
                "config.console.frame",
            ],
            "libraries": {"console": "config.console_tags"},
        },
    },
]
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "config.layers.DoorbellLayer",
        "CONFIG": {"hosts": [REDIS_URL]},
    },
}
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "accounts.backends.ConsoleBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "console:login"
LOGIN_REDIRECT_URL = "/console/"
AXES_FAILURE_LIMIT = 8
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_ENABLE_ACCESS_FAILURE_LOG = True
AXES_LOCKOUT_CALLABLE = "config.guards.locked_out"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English")]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Served straight from where the apps keep them: nothing is collected at deployment.
WHITENOISE_USE_FINDERS = True
APPEND_SLASH = False

# Cookies carry our own name: cookies ignore ports, and a shop's demo site may live on the same host.
SESSION_COOKIE_NAME = "countersign_session"
CSRF_COOKIE_NAME = "countersign_csrf"
_HTTPS = PUBLIC_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 8 * 3600
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
CSRF_FAILURE_VIEW = "config.guards.cross_site"
# The proxy ends TLS and says so; behind anything else than https nobody is believed.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _HTTPS else None
SECURE_SSL_REDIRECT = _HTTPS
SECURE_REDIRECT_EXEMPT = [r"^metrics$"]  # read from inside, past the proxy
HSTS_SECONDS = env.integer("COUNTERSIGN_HSTS_SECONDS", 31536000)
SECURE_HSTS_SECONDS = HSTS_SECONDS if _HTTPS else 0
# Other hosts of the same domain are not ours to bind.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
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
        "manifest-src": ["'self'"],
    },
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 64 * 1024

REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Countersign",
    "DESCRIPTION": (
        "A shop's support agent that takes actions, and a person countersigns each one. Money is "
        "in minor units beside its currency, times are RFC 3339 in UTC. Every error is a problem "
        "document (RFC 9457); /docs/problems/ lists them. A new kind of event, state or problem "
        "may be added at any time: treat one that you do not know as the general case of its kind."
    ),
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SERVERS": [{"url": PUBLIC_URL}],
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "POSTPROCESSING_HOOKS": ["agents.api.spec.close_requests"],
    "COMPONENT_SPLIT_REQUEST": False,
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env.text("COUNTERSIGN_LOG_LEVEL", "INFO")},
    "loggers": {
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "openai": {"level": "WARNING"},
        "opentelemetry": {"level": "ERROR"},  # a collector that is away: a line a batch will do
        "axes": {"level": "WARNING"},
        "daphne": {"level": "WARNING"},
    },
}

env.check()
