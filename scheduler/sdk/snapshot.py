"""How a pool does, as a scheduler tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PoolSnapshot:
    """A pool now, and over the last `window` seconds.

    - `capacity` slots, of which `busy` run something and `held` are kept for promised starts; the autoscaler wants
      `desired`. `reservations` counts starts promised for the next minute.
    - `pending` tasks wait, whatever for; `ready` of them only for their turn.
    - `dispatched`, `succeeded`, `failed` and `retried` count attempts of the window.
    - `priority_adherence`: the part of starts that passed no ready task of a better class. `fixed_start_hit_rate`: the
      part of promised starts that were in time. `schedule_efficiency`: slot time in use, of the time in which there was
      work; `utilization`: of all time. None while there is nothing to tell.
    - Waits and runs in seconds; `worker_seconds` is slot time in use, and `cost` what it came to at the pool's price.
    """

    name: str
    capacity: int
    busy: int
    held: int
    desired: int
    pending: int
    pending_by_class: Mapping[str, int]
    ready: int
    reservations: int
    window: float
    dispatched: int
    succeeded: int
    failed: int
    retried: int
    priority_adherence: float | None
    fixed_start_hit_rate: float | None
    utilization: float
    schedule_efficiency: float | None
    wait_mean: float | None
    wait_p50: float | None
    wait_p90: float | None
    wait_p99: float | None
    run_p50: float | None
    run_p99: float | None
    worker_seconds: float
    cost: float
