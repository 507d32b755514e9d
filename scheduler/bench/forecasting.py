"""How good forecasts are, in virtual time: what was said against what came, on invented workloads and on a trace."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from scheduler.bench.traffic import WORKLOADS, walk
from scheduler.bench.world import Reading, progress
from scheduler.policy.calibration import Report, report
from scheduler.replay.judged import judge
from scheduler.replay.reading import parse_setup, with_words
from scheduler.replay.trace import Trace, read_trace
from scheduler.replay.world import lay_out

TRACE_LIMITS_PER_S: Final = (3, 4, 6, 8, 10, 12)
TRACE_FORECASTS: Final = 64
MIXED: Final = ("classes.high.share=1", "classes.normal.share=3", "classes.low.share=1")
SHARED: Final = ("tenants.a.share=4", "tenants.b.share=2", "tenants.c.share=1")
INSIDE: Final = "forecast inside p90"
INSIDE_TELLING: Final = "forecast inside p90 above 1 s"
ERROR: Final = "forecast median error above 1 s"
COST: Final = "forecast cost"


async def forecast(
    *, minutes: float = 20.0, seed: int = 7, every_s: float = 2.0, trace: Path | None = None
) -> list[Reading]:
    """Part of the waits inside p90 (wanted: 0.85 to 0.97), and median error of waits above a second (0.30).

    `trace`: a file as `replay_trace` reads it; it is replayed under several limits, with classes and tenants too.
    Raises ReplayRefused when it cannot be used.
    """
    readings: list[Reading] = []
    for done, (name, workload) in enumerate(WORKLOADS.items(), 1):
        began = time.thread_time()
        walked = walk(workload, seconds=minutes * 60.0, seed=seed, every_s=every_s)
        cost_ms = 1_000.0 * (time.thread_time() - began) / max(1, walked.forecasts)
        settings = {"workload": name, "minutes": minutes, "seed": seed}
        readings += [*_readings(report(walked.outcomes), settings), Reading(COST, round(cost_ms, 1), "ms", settings)]
        progress("forecast", done, len(WORKLOADS))
    return readings if trace is None else [*readings, *_on_trace(read_trace(trace), seed)]


def _on_trace(trace: Trace, seed: int) -> Iterator[Reading]:
    mixes = {"": (), ", classes": MIXED, ", tenants": SHARED, ", classes and tenants": (*MIXED, *SHARED)}
    for mix, words in mixes.items():
        for per_s in TRACE_LIMITS_PER_S:
            name = f"trace at {per_s}/s{mix}"
            setup = parse_setup("bench", with_words({}, [f"rpm={60 * per_s}", f"seed={seed}", *words]))
            found = judge(lay_out(trace, setup), setup, forecasts=TRACE_FORECASTS)
            yield from _readings(found, {"workload": name, "seed": seed})
            progress(name, 1, 1)


def _readings(found: Report, settings: dict[str, object]) -> list[Reading]:
    settings |= {"n": found.n, "n_above_1s": found.n_telling}
    return [
        Reading(INSIDE, round(found.inside_p90 or 0.0, 4), "part", settings),
        Reading(INSIDE_TELLING, round(found.inside_p90_telling or 0.0, 4), "part", settings),
        Reading(ERROR, round(found.median_error or 0.0, 4), "part", settings),
    ]


def as_table(readings: Sequence[Reading]) -> str:
    """One line for each workload."""
    rows: dict[str, dict[str, Reading]] = {}
    for reading in readings:
        rows.setdefault(str(reading.settings["workload"]), {})[reading.scenario] = reading
    lines = [f"{'workload':36}{'waits':>8}{'inside p90':>12}{'above 1 s':>12}{'of waits':>10}{'median error':>14}"]
    for name, row in rows.items():
        settings = row[INSIDE].settings
        parts = [100.0 * row[each].value for each in (INSIDE, INSIDE_TELLING, ERROR)]
        lines.append(
            f"{name:36}{settings['n']:>8}{parts[0]:>10.1f} %{parts[1]:>10.1f} %{settings['n_above_1s']:>10}"
            f"{parts[2]:>12.1f} %"
        )
    return "\n".join(lines)
