"""What an autoscaler has to remember between two looks, and how that is written down.

Written as plain JSON values, so that the next leader goes on where the last one stopped. What cannot be read (it may
come from another release) is forgotten: the autoscaler learns again within a minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.policy.autoscale import Peak, Track
from scheduler.policy.load import Counted, Learned
from scheduler.policy.mix import Mix, Part
from scheduler.policy.types import DemandId


@dataclass(frozen=True, slots=True)
class Told:
    """What the audit was last told: how many slots, and when."""

    slots: int
    at: float


@dataclass(frozen=True, slots=True)
class ScaleMemory:
    """All of it."""

    learned: Learned = field(default_factory=Learned)
    track: Track = field(default_factory=Track)
    mix: Mix = field(default_factory=dict)
    told: Told | None = None


def write_memory(memory: ScaleMemory) -> dict[str, Any]:
    """As JSON values."""
    learned, track = memory.learned, memory.track
    return {
        "learned": {
            "counted": None if learned.counted is None else [*learned.counted],
            "arrivals_per_s": learned.arrivals_per_s,
            "busy_s": learned.busy_s,
            "ended": learned.ended,
        },
        "track": {"peaks": [[*peak] for peak in track.peaks], "lowered_at": track.lowered_at},
        "mix": [[demand, part.tasks, part.amounts] for demand, part in memory.mix.items()],
        "told": None if memory.told is None else {"slots": memory.told.slots, "at": memory.told.at},
    }


def read_memory(written: Mapping[str, Any] | None) -> ScaleMemory:
    """What was written; an empty memory when it cannot be read."""
    try:
        return _read(written) if written else ScaleMemory()
    except (KeyError, TypeError, ValueError):
        return ScaleMemory()


def _read(written: Mapping[str, Any]) -> ScaleMemory:
    learned, track, told = written["learned"], written["track"], written["told"]
    counted = learned["counted"]
    return ScaleMemory(
        Learned(
            None if counted is None else _counted(*counted),
            _numbers(learned["arrivals_per_s"]),
            float(learned["busy_s"]),
            float(learned["ended"]),
        ),
        Track(
            tuple(Peak(float(at), int(slots)) for at, slots in track["peaks"]),
            None if track["lowered_at"] is None else float(track["lowered_at"]),
        ),
        {
            DemandId(int(demand)): Part(float(tasks), tuple(map(float, amounts)))
            for demand, tasks, amounts in written["mix"]
        },
        None if told is None else Told(int(told["slots"]), float(told["at"])),
    )


def _counted(at: float, ready: list[float], started: list[float], running: float, age_s: float) -> Counted:
    return Counted(float(at), _numbers(ready), _numbers(started), float(running), float(age_s))


def _numbers(values: list[float]) -> tuple[float, ...]:
    first, second, third, fourth = map(float, values)
    return (first, second, third, fourth)
