"""Django settings, derived from the configuration of ``scheduler.conf``. Nothing else here reads the environment."""

from pathlib import Path

import psycopg

from scheduler import conf
from scheduler.postgres import database_url, parse_url

CONFIG = conf.current()
BASE_DIR = Path(__file__).resolve().parent.parent

SECRET_KEY = CONFIG.secret_key
DEBUG = CONFIG.debug
ALLOWED_HOSTS = list(CONFIG.allowed_hosts)
ROOT_URLCONF = "cronoq_app.urls"
ASGI_APPLICATION = "cronoq_app.asgi.application"

INSTALLED_APPS = [
    "channels",
    "csp",
    "cronoq_app.administration.AdministrationConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django_htmx",
    # Serves the API's documentation page from our own origin instead of a content network.
    "ninja",
    "scheduler",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "scheduler.web.compression.PageCompression",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "scheduler.web.origin.origin_middleware",
]

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
            ],
        },
    },
]


def _database() -> dict[str, object]:
    """Return Django's description of the database. Fields it does not name go to libpq as they are (sslmode, ...)."""
    fields = parse_url(database_url(CONFIG))
    options: dict[str, object] = {
        name: value for name, value in fields.items() if name not in {"dbname", "host", "password", "port", "user"}
    }
    options.setdefault("application_name", "cronoq")
    # The planner's statements are the same thousands of times a minute: the server plans them once per connection.
    options["prepare_threshold"] = 1
    options["isolation_level"] = psycopg.IsolationLevel.READ_COMMITTED
    # Connections open on demand and are handed back after each request; waiting longer than this is an overload.
    options["pool"] = {"min_size": 0, "max_size": CONFIG.db_pool_max, "timeout": 5, "reconnect_timeout": 2}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": fields["dbname"],
        "USER": fields.get("user", ""),
        "PASSWORD": fields.get("password", ""),
        "HOST": fields.get("host", ""),
        "PORT": fields.get("port", ""),
        "CONN_MAX_AGE": 0,
        # One round trip per request, so that nobody is answered with the leftovers of a database that restarted.
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": options,
    }


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

STATIC_URL = "/static/"
STATIC_ROOT = CONFIG.data_dir / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    # Names carry a hash of the content, so browsers may keep a file for ever; each has a compressed twin.
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
WHITENOISE_KEEP_ONLY_HASHED_FILES = True

# Room for the largest request of the API (a batch of tasks), which sets its own, smaller bounds.
DATA_UPLOAD_MAX_MEMORY_SIZE = CONFIG.batch_bytes_max + 2**20

LOGIN_URL = "/ops/sign-in/"
LOGIN_REDIRECT_URL = "/ops/"
LOGOUT_REDIRECT_URL = "/ops/sign-in/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

CSRF_TRUSTED_ORIGINS = list(CONFIG.origins)
CSRF_COOKIE_SECURE = CONFIG.tls_only
SESSION_COOKIE_SECURE = CONFIG.tls_only
# Named for the port: cookies ignore ports, and two instances on one machine must not sign each other out.
SESSION_COOKIE_NAME = f"cronoq_session_{CONFIG.port}"
CSRF_COOKIE_NAME = f"cronoq_csrf_{CONFIG.port}"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        # Covers websockets of the same origin too.
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {"scheduler": {"level": "INFO"}},
}
