"""Property tests state no speed: examples may take as long as the machine needs. EXPLORE=1 draws new ones."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "unhurried",
    deadline=None,
    derandomize=not os.environ.get("EXPLORE"),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("unhurried")
