"""Makes a failing world smaller while it still fails, and tells what happened in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.simulation.simulation import Failed, play
from tests.simulation.worlds import Scale

LINES_MAX = 60


@dataclass(frozen=True, slots=True)
class Smallest:
    """The smallest world found that breaks a promise."""

    seed: int
    scale: Scale
    failed: Failed


def shrink(seed: int, scale: Scale, failed: Failed) -> Smallest:
    """Take away tasks, tenants, pools and faults, one at a time, for as long as some promise still breaks."""
    smallest = Smallest(seed, replace(scale, tasks=min(scale.tasks, len(failed.simulation.world.jobs))), failed)
    while (smaller := _smaller(smallest)) is not None:
        smallest = smaller
    return smallest


def _smaller(known: Smallest) -> Smallest | None:
    for scale in _candidates(known.scale):
        try:
            play(known.seed, scale)
        except Failed as failed:
            return Smallest(known.seed, scale, failed)
    return None


def _candidates(scale: Scale) -> Iterator[Scale]:
    for tasks in (scale.tasks // 2, scale.tasks * 3 // 4, scale.tasks - 1):
        if 0 < tasks < scale.tasks:
            yield replace(scale, tasks=tasks)
    for fault in sorted(scale.faults):
        yield replace(scale, faults=scale.faults - {fault})
    if scale.pools > 1:
        yield replace(scale, pools=scale.pools - 1)
    if scale.tenants > 1:
        yield replace(scale, tenants=scale.tenants - 1)


def tell(smallest: Smallest) -> str:
    """The story: the promise, the world, and the last things that happened."""
    run = smallest.failed.simulation
    backlog = run.world.backlog
    lines = [
        f"seed {smallest.seed}: {smallest.failed.sentence}",
        f"  {len(run.world.jobs)} tasks, faults: {', '.join(sorted(smallest.scale.faults)) or 'none'}",
        f"  windows of {run.world.width}, plans of {run.world.starts_max}, leases of {run.world.lease_ttl_s:g} s",
        *(f"  {pool}" for pool in backlog.pools.values()),
        *(f"  {view}" for view in backlog.resources.values()),
        *(f"{time:9.3f}  {text}" for time, text in run.log[-LINES_MAX:]),
        f"{run.time:9.3f}  {smallest.failed.sentence}",
    ]
    return "\n".join(lines)
