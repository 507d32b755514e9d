"""Does a service once more when PostgreSQL undid its transaction to end a deadlock or a conflict of serialization.

Only for services that are one transaction: what was undone was undone whole, so repeating it does nothing twice. It
must never repeat a part of a caller's transaction, nor anything that may have been committed.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from django.db import OperationalError, connection

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)

TRIES: Final = 3
PAUSE_MAX_S: Final = 0.05
"""Between tries, drawn by chance, so that those who met do not meet again."""
UNDONE: Final = frozenset({"40001", "40P01"})
"""SQLSTATEs of serialization_failure and deadlock_detected: the server says that it rolled back."""
_CHANCE: Final = random.SystemRandom()


def again(service: Callable[P, T]) -> Callable[P, T]:
    """Make a service one that is done again, up to `TRIES` times in all. Inside a caller's transaction it raises.

    Its arguments must bear being read twice. What it does on commit must not raise: it is not part of what was undone.
    """

    @wraps(service)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if connection.in_atomic_block:
            return service(*args, **kwargs)
        for number in range(1, TRIES):
            try:
                return service(*args, **kwargs)
            except OperationalError as error:
                if not _was_undone(error):
                    raise
                name = f"{service.__module__.rpartition('.')[2]}.{service.__qualname__}"
                logger.warning("%s was undone by the database (try %d of %d): %s", name, number, TRIES, error)
            time.sleep(_CHANCE.uniform(0.0, PAUSE_MAX_S * number))
        return service(*args, **kwargs)

    return run


def _was_undone(error: OperationalError) -> bool:
    """Whether the server says so; the driver's error is the cause of Django's."""
    return getattr(error.__cause__, "sqlstate", None) in UNDONE
