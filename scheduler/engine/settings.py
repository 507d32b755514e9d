"""The engine's own timings, taken once from the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler import conf
from scheduler.policy.overload import Pace


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Seconds, and counts. `poll_s` bounds what a lost doorbell costs."""

    starts_max: int = 500
    poll_s: float = 0.25
    leader_ttl_s: float = 3.0
    snapshot_s: float = 1.0
    grace_s: float = 5.0
    settle_batch_max: int = 500
    pace: Pace = field(default_factory=Pace)

    @classmethod
    def from_config(cls) -> EngineSettings:
        """The settings of this process."""
        config = conf.current()
        return cls(
            starts_max=config.plan_starts_max,
            poll_s=config.poll_interval_s,
            leader_ttl_s=config.leader_ttl_s,
            snapshot_s=config.snapshot_interval_s,
            grace_s=config.shutdown_grace_s,
        )
