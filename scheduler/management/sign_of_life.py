"""How an engine without a port shows that its loop still turns: it touches a file, and the probe looks at its age.

The file says nothing about the database: an engine that waits for its database is well, and restarting it helps nobody.
"""

import asyncio
import tempfile
import time
from pathlib import Path

INTERVAL_S = 1.0
STALE_AFTER_S = 15.0


def path() -> Path:
    """Return the file's place, in the container's or the machine's temporary directory."""
    return Path(tempfile.gettempdir()) / "cronoq-engine.alive"


async def show() -> None:
    """Touch the file until cancelled, and take it away then."""
    try:
        while True:
            path().touch()
            await asyncio.sleep(INTERVAL_S)
    finally:
        path().unlink(missing_ok=True)


def age_s() -> float:
    """Return the seconds since the last sign, infinity when there was none."""
    try:
        return time.time() - path().stat().st_mtime
    except FileNotFoundError:
        return float("inf")
