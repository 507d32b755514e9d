"""The product's settings for tests in this process: static files straight from their sources, quick password hashes."""

import os

# Set before the product's settings read the environment. The server's files are kept between runs.
os.environ.setdefault("CRONOQ_DATA_DIR", ".cronoq-test")
os.environ.setdefault("CRONOQ_SECRET_KEY", "only-for-tests-" * 4)
os.environ.setdefault("CRONOQ_ALLOWED_HOSTS", "testserver,127.0.0.1,localhost")
os.environ.setdefault("CRONOQ_ORIGINS", "http://testserver,http://127.0.0.1,http://localhost")

from cronoq_app.settings import *  # noqa: F403  # everything but what is named below

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
STATIC_ROOT = None  # type: ignore[assignment]  # nothing is collected
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True  # found when asked for: each test's client would look through them all beforehand
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
