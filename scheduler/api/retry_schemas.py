"""What a client says about trying a task again."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from scheduler.api.answers import In
from scheduler.api.fields import Number
from scheduler.policy.admission import ATTEMPTS_MAX, RetrySettings


class RetryIn(In):
    """How often and how soon a task is tried again; what is left out follows its pool."""

    max_attempts: Annotated[int, Field(strict=True, ge=1, le=ATTEMPTS_MAX)] | None = None
    initial_backoff: Annotated[Number, Field(ge=0, le=86_400)] | None = None
    multiplier: Annotated[Number, Field(ge=1, le=100)] | None = None
    max_backoff: Annotated[Number, Field(ge=0, le=86_400)] | None = None
    jitter: Annotated[bool, Field(strict=True)] | None = None


def retry_settings(retry: RetryIn | None) -> RetrySettings | None:
    """The settings as admission takes them; None: all as the pool says."""
    if retry is None:
        return None
    return RetrySettings(
        max_attempts=retry.max_attempts,
        initial_backoff_s=retry.initial_backoff,
        multiplier=retry.multiplier,
        max_backoff_s=retry.max_backoff,
        jitter=retry.jitter,
    )
