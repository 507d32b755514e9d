"""How an engine without a port shows that its loop still turns: it touches a file, and the probe looks at its age.

The file says nothing about the database: an engine that waits for its database is well, and restarting it helps nobody.
"""

import asyncio
import time
from pathlib import Path

INTERVAL_S = 1.0
STALE_AFTER_S = 15.0


async def show(path: Path) -> None:
    """Touch the file until cancelled, and take it away then."""
    try:
        while True:
            path.touch()  # noqa: ASYNC240  # a touch in memory, once a second
            await asyncio.sleep(INTERVAL_S)
    finally:
        path.unlink(missing_ok=True)  # noqa: ASYNC240  # likewise


def age_s(path: Path) -> float:
    """Return the seconds since the last sign, infinity when there was none."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")
