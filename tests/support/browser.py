"""The browser that drives the console in tests."""

import shutil
import subprocess
from functools import cache

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


@cache
def chromium_path() -> str | None:
    """Return the system's Chromium, or None where Playwright's own was installed instead (its default)."""
    for name in NAMES:
        path = shutil.which(name)
        # Some distributions ship a stub that only says where the real one is.
        if path and subprocess.run([path, "--version"], check=False, capture_output=True).returncode == 0:
            return path
    return None
