"""The numbers of the protocol that both sides must agree on. Sizes are bytes, durations seconds."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

VERSIONS: Final = (1,)
"""Versions of the protocol that are spoken here."""

RESULT_BYTES_MAX: Final = 1_048_576
FRAME_BYTES_MAX: Final = RESULT_BYTES_MAX + 65_536
"""Of one message: the largest result and what goes with it."""
MESSAGE_CHARS_MAX: Final = 2_000
"""Of a failure's message; what is longer is cut."""
POOLS_MAX: Final = 32
SLOTS_MAX: Final = 1_000
"""Leases at once, in one pool."""
LEASES_MAX: Final = 10_000
"""Leases named in one message."""
MESSAGES_MAX: Final = 1_000
"""Messages in one frame."""
BATCH_CHARS: Final = 262_144
"""A frame takes no further message once it is as long as this."""

HELLO_WITHIN_S: Final = 10.0
PING_EVERY_S: Final = 5.0
PONG_WITHIN_S: Final = 15.0
UNREAD_BYTES_MAX: Final = 4_194_304
"""Sent to a worker that has not yet shown that it read them; beyond that it gets no more leases."""
HEARTBEAT_FRACTION: Final = 1.0 / 3.0
"""A lease is to be renewed when this part of its time is over."""
TIMEOUT_GRACE_S: Final = 5.0
"""How long an attempt may go on after its timeout before its lease is taken away."""


class Close(IntEnum):
    """Close codes of the websocket. Only `REPLACED` and those below `UNSUPPORTED` that a person must mend are final."""

    GOING_AWAY = 1001
    TOO_BIG = 1009
    TRY_LATER = 1013
    BAD_MESSAGE = 4400
    UNAUTHENTICATED = 4401
    FORBIDDEN = 4403
    UNSUPPORTED = 4406
    NOT_READING = 4408
    REPLACED = 4409


FINAL: Final = frozenset({Close.BAD_MESSAGE, Close.UNAUTHENTICATED, Close.FORBIDDEN, Close.UNSUPPORTED, Close.REPLACED})
"""After these a worker does not connect again by itself."""
