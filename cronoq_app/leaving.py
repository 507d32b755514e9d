"""Ends a web process that was told to stop although a request still waits, for the database or for somebody's lock.

Daphne cancels its requests and waits for them; one whose thread waits for something else does not notice, and one that
needs the loop to go on waits for ever. What such a request did is either committed or undone by the database.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from typing import Final

from scheduler import conf

log: Final = logging.getLogger(__name__)


def leave_when_told() -> None:
    """Let the process end within the grace period after Daphne was told to. Other servers have their own ways."""
    reactor = sys.modules.get("twisted.internet.reactor")
    if reactor is not None:
        reactor.addSystemEventTrigger("before", "shutdown", _begin_to_leave)


def _begin_to_leave() -> None:
    threading.Thread(target=_leave, name="leave", daemon=True).start()


def _leave() -> None:
    threading.Event().wait(conf.current().shutdown_grace_s)
    log.warning("leaving although a request has not ended")
    sys.stderr.flush()
    os._exit(0)
